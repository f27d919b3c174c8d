"""What is said about privacy, of which events, and on what it rests."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from .reading import (
    CertificateWrong,
    Undecided,
    read_count,
    read_dyadic,
    read_fields,
    read_kind,
    read_list,
    read_pair,
    read_text,
    require_equal,
)
from .sensitivities import Sens, is_whole, read_sensitivity, require_lattice

MAX_EVENTS = 1_000_000
"""Events of a run, each counted as often as it occurs: all are hashed one by one."""

MAX_WORK = 1 << 25
"""Units of work, of about 0.2 microseconds, for a short document: about seven seconds."""

WORK_A_BYTE = 480
"""Units of work a byte of the document more, so that long lists can be checked."""

MOST_WORK = 1 << 28
"""Units of work for any document: about a minute; reached at some 490,000 bytes."""

NOTIONS = {  # in every notion a larger last value is the weaker statement
    "gdp": ("mu_squared",),
    "zcdp": ("rho",),
    "rdp": ("order", "epsilon"),
    "approx-dp": ("delta", "epsilon"),
    "pure-dp": ("epsilon",),
}
_PURE = "Bun, Steinke 2016, Proposition 1.4 (pure DP is zCDP)"
_PURE_SUM = "Dwork, Roth 2014, Theorem 3.14 (composition of pure DP)"
_PURE_GROUP = "Dwork, Roth 2014, Theorem 2.2 (pure DP of groups)"
_GDP_SUM = "Dong, Roth, Su 2022, Corollary 3.3 (composition of GDP)"
_GDP_GROUP = "Dong, Roth, Su 2022, Theorem 2.14 (GDP of groups)"
_PAIRS = "Zhu, Dong, Wang 2022, Theorems 10 and 11 (dominating pairs)"
_PARALLEL = "McSherry 2009, Theorem 4 (parallel composition)"
_GDP_FILTER = "Smith, Thakurta 2022; Koskela, Tobaben, Honkela 2023 (filters of GDP)"
_ZCDP_FILTER = "Whitehouse, Ramdas, Rogers, Wu 2023 (filters of zCDP)"
_RDP_FILTER = "Feldman, Zrnic 2021, Theorem 3.1 (filters of one Rényi order)"
AXIOMS = {  # (rule, notion): the published theorem, for what the Coq proofs do not cover
    ("gaussian-gdp", "gdp"): "Dong, Roth, Su 2022, Theorem 2.7 (Gaussian noise is GDP)",
    ("composition", "gdp"): _GDP_SUM,
    ("repeated", "gdp"): _GDP_SUM,
    ("group", "gdp"): _GDP_GROUP,
    ("replace-one", "gdp"): _GDP_GROUP,
    ("filter", "gdp"): _GDP_FILTER,
    ("filter", "zcdp"): _ZCDP_FILTER,
    ("filter", "rdp"): _RDP_FILTER,
    ("gdp-approx-dp", "approx-dp"): "Balle, Wang 2018, Theorem 8 (delta of GDP)",
    ("parties", "approx-dp"): _PARALLEL,
    ("events", "approx-dp"): _PARALLEL,
    ("laplace-pure", "pure-dp"): "Dwork, Roth 2014, Theorem 3.6 (Laplace noise)",
    ("discrete-laplace-pure", "pure-dp"): (
        "Ghosh, Roughgarden, Sundararajan 2012 (discrete Laplace noise)"
    ),
    ("poisson-pure", "pure-dp"): "Balle, Barthe, Gaboardi 2018, Theorem 8 (Poisson sampling)",
    ("fixed-batch-pure", "pure-dp"): (
        "Balle, Barthe, Gaboardi 2018, Theorem 9 (sampling a fixed batch)"
    ),
    ("composition", "pure-dp"): _PURE_SUM,
    ("repeated", "pure-dp"): _PURE_SUM,
    ("group", "pure-dp"): _PURE_GROUP,
    ("replace-one", "pure-dp"): _PURE_GROUP,
    ("parties", "pure-dp"): _PARALLEL,
    ("events", "pure-dp"): _PARALLEL,
    ("laplace-zcdp", "zcdp"): _PURE,
    ("discrete-laplace-zcdp", "zcdp"): _PURE,
    ("discrete-gaussian-zcdp", "zcdp"): (
        "Canonne, Kamath, Steinke 2020, Theorem 14 (discrete Gaussian)"
    ),
    ("poisson-rdp", "rdp"): "Mironov, Talwar, Zhang 2019, Theorems 4 and 5 (Poisson sampling)",
    ("fixed-batch-rdp", "rdp"): (
        "Wang, Balle, Kasiviswanathan 2019, Theorem 9 (sampling a fixed batch)"
    ),
    ("loss-distribution", "approx-dp"): _PAIRS,
    ("privacy-loss", "approx-dp"): _PAIRS,
    ("laplace-losses", "approx-dp"): _PAIRS,
}
_ALWAYS = (
    "the event list is complete and says what happened",
    "the noise is ideal, independent and drawn afresh for every release",
    "sensitivities, noise and sampling rates do not depend on the data",
)
"""What is about the machine that ran, and no document can prove: always assumed."""

STOPPING = (
    "the number of events and the time of stopping do not depend on what was released, or all of "
    "the plan is in the list"
)
"""Without it a composed cost is of a list that was chosen by its own outcomes; a filter's budget is
of every list that can come of it."""

FILTERED = {
    "the filter's budget, its notion and its order were fixed before the first release, and every "
    "release that would have crossed it was refused",
    "what a release does was decided before its noise was drawn, by earlier messages and nothing "
    "else that was learnt from the data",
}
"""What the theorems about filters rest on, in place of `STOPPING`."""

COLUMNS = "every column belongs to one party, and who holds which column is public and fixed"
"""The same where neighbours differ in a column of every record."""

WHOLE = "what discrete noise is added to is whole numbers"
"""Where that does not follow from how the sensitivity was derived."""

ONE_PARTY = "all records of a unit live with one party"
"""Of groups over several parties, where costs of different kinds do not add up to the largest."""

UNTOLD = "what is declared does not tell who was drawn"
"""Of samples under relations that leave the number of records alone: what moves by nothing between
two neighbours may still be that number, or a code of the sample."""

DIVIDED = "means of a Poisson sample divide by the number in their derivation"
"""Whoever is drawn, as if all others were null records."""

DRAWN_AGAIN = "docs/rules.md, privacy-loss (a batch drawn with replacement)"
"""Of batches drawn with replacement, and of groups in those drawn without."""

LISTED_LATER = {STOPPING, _PARALLEL, WHOLE, ONE_PARTY, UNTOLD, DIVIDED, DRAWN_AGAIN}
"""What older documents need not list: it held of them, and was not written down yet."""

PARTIES = "every record belongs to one party, and who holds which record is public and fixed"
"""What parallel composition over parties rests on (McSherry 2009)."""

HIDDEN = "samples are drawn afresh, as stated, and stay hidden"
"""What amplification by sampling rests on: who sees the sample gains nothing from it."""


class Budget(NamedTuple):
    """What a filter kept: no record was let pay more, under this relation and in this notion."""

    adjacency: str
    notion: str
    values: tuple[Fraction, ...]


class Priv(NamedTuple):
    """What one record is exposed to, {mechanism: times} or None for the whole run, costs this.

    `budget`: of the filter that the statement follows from, which is then about all that the filter
    could have let happen, whatever was released and whenever it ended.
    """

    exposure: dict[int, int] | None
    adjacency: str
    group: int
    notion: str
    values: tuple[Fraction, ...]
    budget: Budget | None = None

    def costing(self, *values: Fraction) -> "Priv":
        """Return the same statement at other numbers, in the order of `NOTIONS`."""
        return self._replace(values=values)

    def agrees(self, other: "Priv") -> None:
        """Raise unless both speak of the same relation and the same notion at the same order."""
        require_equal("premises to agree on", other[1:4], self[1:4])
        require_equal("premises to agree on order or delta", other.values[:-1], self.values[:-1])


class Run:
    """The mechanisms and events that a certificate speaks of, and what its steps assumed."""

    def __init__(self, mechanisms: Any, events: Any, size: int = 0) -> None:
        """Read the mechanisms and events of a document; hash the events.

        Args:
            mechanisms: a list, each mechanism once; steps and events name them by their place in
                it.
            events: a list, in the order of the run.
            size: of the document, in bytes; longer ones may take more work.

        Raises `CertificateWrong` for repeated mechanisms and malformed events.
        """
        self.mechanisms = read_list(mechanisms)
        self._texts = [
            json.dumps(m, sort_keys=True, separators=(",", ":")) for m in self.mechanisms
        ]
        self._places = {text: i for i, text in enumerate(self._texts)}
        require_equal("number of distinct mechanisms", len(self._places), len(self._texts))
        self._sensitivities: dict[str, Sens] = {}
        self._met: set[int] = set()
        self._work, self._most_work = 0, min(MAX_WORK + WORK_A_BYTE * size, MOST_WORK)
        self.assumptions: set[str] = {*_ALWAYS, STOPPING}
        self.axioms: set[str] = set()
        self.subject = self._read_events(read_list(events))

    def spend(self, work: int) -> None:
        """Count units of work of about 0.2 microseconds; raise `Undecided` beyond the allowance."""
        self._work += work
        if self._work > self._most_work:
            raise Undecided(f"gave up after {self._most_work} units of work")

    def _read_events(self, events: list[Any]) -> str:
        """Hash the event list as it was written, and note what each party is exposed to."""
        digest, total = hashlib.sha256(b"["), 0
        self.common: Counter[int] = Counter()
        self.own: dict[str, Counter[int]] = {}
        for event in events:
            audience, mechanism, parties, release, round_, times = read_fields(
                event, "audience", "mechanism", "parties", "release", "round", "times"
            )
            total += read_count(times)
            if total > MAX_EVENTS or read_count(mechanism, 0) >= len(self._texts):
                raise CertificateWrong(f"expected {MAX_EVENTS} events of listed mechanisms at most")
            if audience not in ("server", "neighbours", "public") or not read_text(release):
                raise CertificateWrong(f"expected a known audience and a release, got {audience}")
            names = [read_text(party) for party in read_list(parties)]
            if len(set(names)) < len(names) or (names and _is_split(self.mechanisms[mechanism])):
                raise CertificateWrong(f"expected parties named once, got {names!s:.200}")
            self._met.add(mechanism)
            for party in set(names):
                self.own.setdefault(party, Counter())[mechanism] += times
            if not names:
                self.common[mechanism] += times
            written = (
                f'{{"audience":{json.dumps(audience)},"mechanism":{self._texts[mechanism]},'
                f'"parties":{json.dumps(names, separators=(",", ":"))},'
                f'"release":{json.dumps(release)},'
                f'"round":{read_count(round_, 0)},"schema":1}}'
            ).encode()
            self.spend(len(written) * times // 32)
            for k in range(times):
                digest.update(written if total == times and k == 0 else b"," + written)
        digest.update(b"]")
        if self.own:
            self.assumptions.add(PARTIES)
        return digest.hexdigest()

    def place(self, mechanism: Any) -> int:
        """Return the number of a mechanism that is written out, which must be listed; it counts as
        used.
        """
        text = json.dumps(mechanism, sort_keys=True, separators=(",", ":"))
        self.spend(len(text) // 8)
        if text not in self._places:
            raise CertificateWrong(f"expected a listed mechanism instead got {text:.120}")
        self._met.add(self._places[text])
        return self._places[text]

    def at(self, place: Any) -> Any:
        """Return the mechanism of this number, which must be listed; it counts as used."""
        if read_count(place, 0) >= len(self.mechanisms):
            raise CertificateWrong(f"expected a listed mechanism instead got number {place}")
        self._met.add(place)
        return self.mechanisms[place]

    def require_all_met(self) -> None:
        """Refuse a mechanism that stands in no event, no step and no mechanism of these."""
        met = "\n".join(self._texts[place] for place in sorted(self._met))
        for place, text in enumerate(self._texts):
            if place not in self._met:
                self.spend(1 + len(met) // 32)
                if text not in met:
                    raise CertificateWrong(f"expected mechanisms that are used, not {text:.120}")

    def sensitivity(self, value: Any, norm: str) -> Sens:
        """Return a mechanism's sensitivity, checked once however often it occurs.

        What its declared parts rest on joins the run's assumptions. Raises `CertificateWrong` if it
        is not in this norm: l1 for Laplace noise, l2 for Gaussian noise.
        """
        text = json.dumps(value, sort_keys=True)
        self.spend(len(text) // 8)
        if text not in self._sensitivities:
            self._sensitivities[text] = read_sensitivity(value)
        found = self._sensitivities[text]
        require_equal("norm", found.norm, norm)
        self.assumptions |= {f"declared: {reason}" for reason in found.reasons}
        return found

    def views(self, split: bool = False) -> list[dict[int, int]]:
        """What a record of each party is exposed to, equal views once.

        `split`: of mechanisms that are made of parts by party, to its party's part alone.
        """
        common, of_party = self._split() if split else (self.common, self.own)
        self.spend(sum(map(len, of_party.values())) + len(of_party) + len(common))
        own = {frozenset(counts.items()) for counts in of_party.values()} or {frozenset()}
        self.spend(len(own) * (len(common) + 1))
        found = [dict(common + Counter(dict(counts))) for counts in own]
        # a party that releases nothing costs nothing
        return [view for view in found if view] or found[:1]

    def _split(self) -> tuple[Counter[int], dict[str, Counter[int]]]:
        """Return what all records meet, and what those of each party meet besides.

        Mechanisms made of parts by party, repeated ones too, are taken apart: a record meets its
        own party's part as often as the whole was run.
        """
        common: Counter[int] = Counter()
        own = {name: Counter(counts) for name, counts in self.own.items()}
        for place, often in self.common.items():
            mechanism = self.mechanisms[place]
            while isinstance(mechanism, dict) and mechanism.get("kind") == "repeated":
                mechanism, n = read_kind(mechanism, "repeated", "event", "times")
                often *= read_count(n)
            if not isinstance(mechanism, dict) or mechanism.get("kind") != "parties":
                common[place] += self.common[place]
                continue
            self.assumptions.add(PARTIES)
            for name, held in parts_by_party(mechanism):
                counts = own.setdefault(name, Counter())
                for part in held:
                    counts[self.place(part)] += often
        return common, own

    def noise(self, mechanism: Any, kind: str, scale: str, norm: str) -> tuple[Sens, Fraction]:
        """The sensitivity of a mechanism with noise, and (sensitivity / scale)²."""
        stated, width = read_kind(mechanism, kind, "sensitivity", scale)
        sens, squared = self.sensitivity(stated, norm), read_dyadic(width) ** 2
        if kind.startswith("discrete-") and not is_whole(stated["derivation"]):
            self.assumptions.add(WHOLE)
        if squared == 0 and sens.squared > 0:
            raise CertificateWrong(f"expected {scale} > 0 instead got 0: no finite cost")
        require_lattice(sens, read_dyadic(width))
        return sens, sens.squared / squared if sens.squared else Fraction(0)


def parts_by_party(mechanism: Any) -> list[tuple[str, list[Any]]]:
    """The names of parties, each once, and the mechanisms that each runs."""
    (parts,) = read_kind(mechanism, "parties", "parts")
    found = [(read_text(name), read_list(held)) for name, held in map(read_pair, read_list(parts))]
    if len({name for name, _ in found}) < len(found):
        raise CertificateWrong("expected each party once")
    if any(_is_split(part) for _, held in found for part in held):
        raise CertificateWrong("expected parties that are not split into parties again")
    return found


def _is_split(mechanism: Any) -> bool:
    """Whether a mechanism, repeated or not, is made of parts by party."""
    while isinstance(mechanism, dict) and mechanism.get("kind") == "repeated":
        mechanism = mechanism.get("event")
    return isinstance(mechanism, dict) and mechanism.get("kind") == "parties"


Rules = dict[str, tuple[Callable[..., Priv], tuple[str, ...], int]]
"""A rule's function, the names of its parameters, and its number of premises, -1 for any."""
