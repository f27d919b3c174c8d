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
