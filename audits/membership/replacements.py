"""What may stand in the target's place under replace-one, and which choice an attacker gains from.

The relation allows any record; a choice that hardly differs from the target hides what there is to
find. So several public ones are tried on models that are not judged, and the worst is played.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...mechanisms.errors import InvalidParameter, require_nonnegative, require_positive_int
from ...mechanisms.protocols import FloatArray
from ..bounds import Scores
from ..metrics import auc
from .game import Game
from .targets import Target

# models of each world that a choice is made on; each is a training
_MOST_MODELS = 50


def replacements(
    target: Target, rows: FloatArray, labels: Any, *, classes: Sequence[Any]
) -> tuple[Target, ...]:
    """Return records that may stand in the target's place, all of them from public facts.

    Its own features with another label, which turns a linear model's gradient around; the first of
    the population with another label; and the one of the population that is farthest away.

    Args:
        target: the record in question.
        rows, labels: of the population, shapes (Z, d) and (Z,).
        classes: the labels that there are.

    Raises `InvalidParameter` where none differs from the target.
    """
    found: list[Target] = []
    others = [label for label in classes if label != target.label]
    if others:
        words = f"the same features with the label {others[0]}"
        found.append(Target(target.features, others[0], words))
    otherwise = np.flatnonzero(np.asarray(labels) != target.label)
    distances = np.linalg.norm(np.asarray(rows) - target.features, axis=1)
    places = {int(place): "of another label" for place in otherwise[:1]}
    if distances.size and distances.max() > 0:
        places.setdefault(int(np.argmax(distances)), "the farthest")
    found += [
        Target(rows[place], labels[place], f"record {place} of the population, {why}")
        for place, why in places.items()
    ]
    if not found:
        raise InvalidParameter("population", len(labels), "with a record unlike the target")
    return tuple(found)


def worst_replacement(
    game_of: Callable[[Target], Game], choices: Sequence[Target], *, models: int, seed: int
) -> Target:
    """Return the choice whose world is easiest to tell from the target's by the target's loss.

    It is made on models of their own, so it costs the bounds no confidence.

    Args:
        game_of: the game in which a choice stands in the target's place.
        choices: at least one.
        models: at most so many in each world; more than 50 are not used.
        seed: of the game to come; these models take other noise.
    """
    require_positive_int("models", models)
    require_nonnegative("seed", seed)
    if len(choices) == 1:
        return choices[0]
    # other words than those of the game
    words = np.random.SeedSequence(seed, spawn_key=(1,)).generate_state(1, np.uint64)
    trials, pilot = min(models, _MOST_MODELS), int(words[0])
    inside = game_of(choices[0]).answers(inside=True, trials=trials, seed=pilot).confidence

    def separation(choice: Target) -> float:
        outside = game_of(choice).answers(inside=False, trials=trials, seed=pilot).confidence
        return abs(auc(Scores(inside, outside)) - 0.5)

    return max(choices, key=separation)
