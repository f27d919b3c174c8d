"""The front door: one module a command."""
