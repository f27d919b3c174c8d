"""The rules that judgements are made by, and their table: the trusted base on one screen."""

from . import conversion, loss_distribution, privacy, sampling, sensitivity
from .registry import TABLE, Rule
from .sensitivity import derive

__all__ = [
    "TABLE",
    "Rule",
    "conversion",
    "derive",
    "loss_distribution",
    "privacy",
    "sampling",
    "sensitivity",
]
