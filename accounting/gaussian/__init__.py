"""Gaussian mechanisms: exact and fast conversions of GDP, and their accountant."""
