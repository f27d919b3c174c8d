"""Certificates and what finds them: rules, prover, Coq goals."""
