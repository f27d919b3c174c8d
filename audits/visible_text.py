"""Texts of strangers, made harmless for a terminal or a page.

A claim file, a ledger or a column name may hold escape sequences, or characters that turn the
direction of writing and so make a text read as another one.
"""

import unicodedata


def visible(text: str) -> str:
    """Return `text` with invisible and direction-changing characters written as escapes."""
    return "".join(
        c
        if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn")
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def in_a_line(text: str) -> str:
    """Return `text` with its line breaks and tabs written as escapes."""
    return text.replace("\n", "\\n").replace("\t", "\\t")


def mistake(error: Exception) -> str:
    """Return an error as a line for whoever made it: its kind, the value that is wrong, a remedy.

    What the file system refuses says of itself only a number and a name.
    """
    words = str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        words = f"{error.filename} must be readable or writable ({error.strerror}); choose another"
    # a message may quote what a stranger wrote
    return visible(f"{type(error).__name__}: {words}")
