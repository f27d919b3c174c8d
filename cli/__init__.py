"""The front door: one module a command; parses, calls, prints; no mathematics."""

from .app import main, run

__all__ = ["main", "run"]
