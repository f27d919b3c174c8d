"""The independent checker: the standard library and nothing of the project."""
