"""Certificates and what finds them: derivations, prover, Coq goals."""
