"""The commonest questions, ours beside dp_accounting's: what is typed, answer, seconds, gap.

    python benchmarks/questions.py

Characters are of the statements below, imports included, without white space at their ends; each
runs in a namespace of its own, in this process, after its imports were loaded once. Seconds are of
the processor, the best of three. A gap is (answer - reference) / reference, the reference being the
lower end of our enclosure where one is known, else ours. Tools that are not installed here (Opacus
wants torch, TensorFlow Privacy tensorflow, jax-privacy jax) stand with what is typed, counted from
their documentation, and no answer: nothing is printed that was not run.
"""

from importlib.util import find_spec
from time import process_time
from typing import Any

OURS = "dpledger"
_DP = "import dpledger as dp\n"
_SGD = (
    "records=60000, batch=256, epochs=60, delta=1e-5, "
    "sampling='poisson', adjacency='add-remove-one'"
)
_THEIRS = """from dp_accounting import *
from dp_accounting.pld import PLDAccountant
"""
_EVENT = "SelfComposedDpEvent(PoissonSampledDpEvent(256/60000, GaussianDpEvent({})), 14063)"

QUESTIONS: dict[str, dict[str, str]] = {
    "ε of DP-SGD: 60,000 records, batch 256, σ 1.1, 60 epochs, δ 1e-5": {
        OURS: f"{_DP}answer = dp.epsilon(noise_multiplier=1.1, {_SGD}).epsilon",
        "dp_accounting": (
            f"{_THEIRS}answer = PLDAccountant().compose({_EVENT.format(1.1)}).get_epsilon(1e-5)"
        ),
        "dp_accounting, our accountant": (
            "from dp_accounting import *\n"
            "from dpledger.interop.dp_accounting import PldAccountant\n"
            f"answer = PldAccountant().compose({_EVENT.format(1.1)}).get_epsilon(1e-5)"
        ),
        "opacus": (
            "from opacus.accountants import PRVAccountant\n"
            "a = PRVAccountant()\n"
            "a.history = [(1.1, 256/60000, 14063)]\n"
            "answer = a.get_epsilon(1e-5)"
        ),
        "tensorflow_privacy": (
            "from tensorflow_privacy import compute_dp_sgd_privacy_statement\n"
            "print(compute_dp_sgd_privacy_statement(60000, 256, 60, 1.1, 1e-5, "
            "used_microbatching=False))"
        ),
        "jax_privacy": (
            "from jax_privacy.accounting import accountants, analysis\n"
            "p = analysis.DpParams(noise_multipliers=1.1, num_samples=60000, delta=1e-5, "
            "batch_size=256)\n"
            "answer = analysis.DpsgdTrainingAccountant(accountants.PldAccountantConfig())"
            ".compute_epsilon(14063, p)"
        ),
    },
    "noise multiplier of the same run for ε 2": {
        OURS: f"{_DP}answer = dp.noise_multiplier(epsilon=2, {_SGD}).noise_multiplier",
        "dp_accounting": (
            f"{_THEIRS}answer = calibrate_dp_mechanism(PLDAccountant, "
            f"lambda s: {_EVENT.format('s')}, 2, 1e-5)"
        ),
        "opacus": (
            "from opacus.accountants.utils import get_noise_multiplier\n"
            "answer = get_noise_multiplier(target_epsilon=2, target_delta=1e-5, "
            "sample_rate=256/60000, epochs=60)"
        ),
    },
    "most steps of the same run for ε 2, σ 1.1": {
        OURS: (
            f"{_DP}answer = dp.steps(epsilon=2, noise_multiplier=1.1, "
            f"{_SGD.replace('epochs=60, ', '')}).steps"
        ),
    },
    "ε of 10,000 Gaussian releases, σ 100, δ 1e-10": {
        OURS: (
            f"{_DP}answer = dp.epsilon(noise_multiplier=100, steps=10000, delta=1e-10, "
            "sampling='none', adjacency='add-remove-one').epsilon"
        ),
        "dp_accounting": (
            f"{_THEIRS}answer = PLDAccountant().compose(GaussianDpEvent(100), 10000)"
            ".get_epsilon(1e-10)"
        ),
    },
    "ε of 60 shuffled epochs, σ 1.1, zero-out, δ 1e-5": {
        OURS: (
            f"{_DP}answer = dp.epsilon(noise_multiplier=1.1, epochs=60, delta=1e-5, "
            "sampling='shuffled', adjacency='zero-out-one').epsilon"
        ),
        "dp_accounting": (
            f"{_THEIRS}answer = PLDAccountant().compose(GaussianDpEvent(1.1), 60).get_epsilon(1e-5)"
        ),
    },
}


def asked(statements: str) -> tuple[float, float]:
    """Return the answer of statements and the processor seconds they take, the best of three."""
    seconds = []
    space: dict[str, Any] = {}
    for _ in range(4):  # the first loads modules
        space = {}
        begun = process_time()
        exec(statements, space)
        seconds.append(process_time() - begun)
    return float(space["answer"]), min(seconds[1:])


def main() -> None:
    """Print a table for each question."""
    for question, tools in QUESTIONS.items():
        print(f"## {question}\n")
        print("| tool | characters | answer | seconds | gap |\n|---|---|---|---|---|")
        ours, _ = asked(tools[OURS])
        for tool, statements in tools.items():
            typed = len(statements.strip())
            if tool.partition(",")[0] != OURS and find_spec(tool.partition(",")[0]) is None:
                print(f"| {tool} | {typed} | not run | | |")
                continue
            answer, seconds = asked(statements)
            gap = (answer - ours) / ours
            print(f"| {tool} | {typed} | {answer:.9g} | {seconds:.3f} | {gap:+.1e} |")
        print()


if __name__ == "__main__":
    main()
