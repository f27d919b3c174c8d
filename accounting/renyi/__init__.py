"""Renyi differential privacy: divergences of mechanisms, amplification by sampling, accountants."""
