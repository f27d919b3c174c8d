"""Formulas typed as text are set as HTML, prose is left alone, and nothing becomes markup."""

import pytest

from dpledger.audits.report.formulas import typeset


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("sigma >= sqrt(2 ln(1.25/delta)) Delta/epsilon", "σ ≥ √(2 ln(1.25/δ)) Δ/ε"),
        ("g_i^s", "g<sub>i</sub><sup>s</sup>"),
        ("x_i^{k+1}", "x<sub>i</sub><sup>k+1</sup>"),
        ("R^(J-1)", "R<sup>J-1</sup>"),
        ("e^epsilon", "e<sup>ε</sup>"),
        ("eta_nu", "η<sub>ν</sub>"),
        ("u_* and grad f(x_*)", "u<sub>*</sub> and ∇f(x<sub>*</sub>)"),
        ("b1, c0 and a1", "b<sub>1</sub>, c<sub>0</sub> and a1"),
        ("epsilon_bar = c0", "ε\u0304 = c<sub>0</sub>"),
        ("zero_out, beta-mean, metadelta", "zero_out, β-mean, metadelta"),
        ("<b>x_1</b>", "&lt;b&gt;x<sub>1</sub>&lt;/b&gt;"),
        ("x_{<script>}", "x<sub>&lt;script&gt;</sub>"),
    ],
)
def test_a_formula_is_set(text: str, html: str) -> None:
    assert typeset(text) == html
