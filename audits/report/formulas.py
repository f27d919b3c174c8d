"""Formulas that were typed as plain text, set for a page: no script, no font, nothing fetched.

>>> str(typeset("mu = epsilon sqrt(t/2), x_i^{k+1} >= 0"))
'μ = ε √(t/2), x<sub>i</sub><sup>k+1</sup> ≥ 0'
"""

import re

from markupsafe import Markup, escape

_LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "Delta": "Δ",
    "epsilon": "ε",
    "zeta": "ζ",
    "eta": "η",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "xi": "ξ",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
}
"""Greek letters by the names that formulas have them under."""

_SIGNS = (("epsilon_bar", "ε\u0304"), (">=", "≥"), ("<=", "≤"), ("sqrt(", "√("))
"""Further signs, each for its text; the first one before letters are replaced."""

_NAMES = re.compile(rf"(?<![A-Za-z])({'|'.join(_LETTERS)})(?![A-Za-z])")
"""Letters by name, where no other letter stands on either side."""
_GRADIENT = re.compile(r"\bgrad (?=f\b|f_)")
""""grad f" is ∇f."""
_INDEXED = re.compile(r"(?<!\w)(\w[\u0300-\u036f]?)_(\{[^{}]*\}|[^\W_]+|\*)")
"""A letter with a subscript: x_i, x_{i+1}."""
_NUMBERED = re.compile(r"(?<![\w&#])([bc])([0-9])\b")
"""The constants b1, c1 of papers, whose number is a subscript."""
_RAISED = re.compile(r"\^(\{[^{}]*\}|\([^()]*\)|[^\W_]+|\*)")
"""A superscript: x^2, x^{k+1}."""


def typeset(text: str) -> Markup:
    """Return `text` as HTML, with Greek letters, signs, subscripts and superscripts.

    Args:
        text: of anybody; whatever is markup in it is escaped.
    """
    for plain, sign in _SIGNS:
        text = text.replace(plain, sign)
    text = _NAMES.sub(lambda found: _LETTERS[found[1]], _GRADIENT.sub("∇", text))
    html = str(escape(text))
    html = _INDEXED.sub(lambda found: f"{found[1]}<sub>{found[2].strip('{}')}</sub>", html)
    html = _NUMBERED.sub(r"\1<sub>\2</sub>", html)
    return Markup(_RAISED.sub(lambda found: f"<sup>{found[1].strip('{}()')}</sup>", html))
