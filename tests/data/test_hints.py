"""Hints: the words that are known at the place that a message names, the nearest among them."""

from enum import Enum

import msgspec
import pytest

from dpledger.data.hints import hint


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Disc(msgspec.Struct, forbid_unknown_fields=True, tag_field="shape", tag="disc"):
    radius: float


class Box(msgspec.Struct, forbid_unknown_fields=True, tag_field="shape", tag="box"):
    width: float
    colour: Colour | None = None
    seed: int = 0


class Palette(msgspec.Struct):
    colour: Colour


class Drawing(msgspec.Struct, forbid_unknown_fields=True):
    parts: tuple[Disc | Box, ...]
    named: dict[str, Colour] = {}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"part": []}, "among 'parts', 'named' (nearest: 'parts')"),
        ({"parts": [{"shape": "disk"}]}, "among 'disc', 'box' (nearest: 'disc')"),
        (
            {"parts": [{"shape": "disc", "radius": 1}, {"shape": "box", "with": 1}]},
            "among 'shape', 'width', 'colour', 'seed' (nearest: 'width')",
        ),
        (
            {"parts": [{"shape": "disc", "width": 1}]},
            "among 'shape', 'radius'",
        ),
        (
            {"parts": [{"shape": "box", "width": 1, "colour": "rad"}]},
            "among 'red', 'blue' (nearest: 'red')",
        ),
        ({"parts": [], "named": {"sky": "blu"}}, "among 'red', 'blue' (nearest: 'blue')"),
        ({}, ""),
    ],
)
def test_a_hint_says_what_is_known_at_the_wrong_word(document: object, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(document, Drawing)
    assert hint(str(caught.value), Drawing, document) == (f", expected {words}" if words else "")


@pytest.mark.parametrize(
    ("document", "kind", "words"),
    [
        ({"parts": [{"shape": "disc", "radius": "one"}]}, Drawing, ": 'one'"),
        # a message may end up in a log, where the seed of noise must not stand
        ({"parts": [{"shape": "box", "width": 1, "seed": "12345"}]}, Drawing, ""),
        ({}, Palette, ", one of 'red', 'blue'"),
    ],
)
def test_a_hint_repeats_a_value_of_another_type_and_lists_a_missing_choice(
    document: object, kind: type[msgspec.Struct], words: str
) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(document, kind)
    assert hint(str(caught.value), kind, document) == words
