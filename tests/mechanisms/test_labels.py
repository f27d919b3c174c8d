"""Laws of label domains: what is outside is refused, by name, before anything is spent."""

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    DataShape,
    EventList,
    FixedBatch,
    InvalidParameter,
    LabelDomain,
    PlanningCurator,
    PrivateDataset,
    RealLabels,
    SamplingCurator,
    SeededSampler,
)
from dpledger.solvers import Huber, Logistic, Multinomial

REPLACE = Adjacency.REPLACE_ONE
DOMAINS: list[LabelDomain] = [SIGNS, ClassLabels(2), ClassLabels(3), RealLabels(0.5), RealLabels(2)]
CONTAINED = {(i, i) for i in range(5)} | {(4, 0), (4, 3)}


@pytest.mark.parametrize("outer", range(5))
@pytest.mark.parametrize("inner", range(5))
def test_a_domain_contains_those_whose_labels_it_has_with_one_meaning(
    outer: int, inner: int
) -> None:
    assert DOMAINS[outer].contains(DOMAINS[inner]) is ((outer, inner) in CONTAINED)


@pytest.mark.parametrize("domain", DOMAINS)
def test_extremes_are_two_labels_and_none_are_farther_apart(domain: LabelDomain) -> None:
    low, high = domain.extremes
    domain.require(np.array([low, high]))
    if isinstance(domain, ClassLabels):
        assert low != high  # classes are equally far from each other
    else:
        with pytest.raises(InvalidParameter):
            domain.require(np.array([np.nextafter(high, np.inf)]))
        assert low == -high < 0


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_filler_of_padded_blocks_is_a_label(domain: LabelDomain) -> None:
    domain.require(np.array([domain.filler]))


BAD = [
    (SIGNS, 0.0, "in {-1, \\+1}"),
    (SIGNS, float("nan"), "in {-1, \\+1}"),
    (ClassLabels(3), 3.0, "a whole number in \\[0, 2\\]"),
    (ClassLabels(3), -1.0, "a whole number"),
    (ClassLabels(3), 0.5, "a whole number"),
    (ClassLabels(3), float("nan"), "a whole number"),
    (RealLabels(2.0), 2.0000001, "in \\[-2, 2\\]"),
    (RealLabels(2.0), float("-inf"), "in \\[-2, 2\\]"),
    (RealLabels(2.0), float("nan"), "in \\[-2, 2\\]"),
]


def private(domain: LabelDomain, label: float, layout=np.asarray) -> PrivateDataset:
    return AuditDataset(
        layout(np.eye(3)),
        np.array([domain.filler, label, domain.filler]),
        adjacency=REPLACE,
        row_bound=1.0,
        label_domain=domain,
    )


@pytest.mark.parametrize(("domain", "label", "words"), BAD)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_labels_outside_the_public_domain_are_refused(
    domain: LabelDomain, label: float, words: str, layout: object
) -> None:
    with pytest.raises(InvalidParameter, match=f"'that of record 1' must be {words}") as caught:
        private(domain, label, layout)
    # loggers keep messages: where it is, never what it is
    assert str(label) not in str(caught.value)
    with pytest.raises(InvalidParameter, match=words):
        private(domain, domain.filler, layout).with_record(0, label=label)


@pytest.mark.parametrize(
    ("domain", "loss"),
    [
        (ClassLabels(3), Logistic()),
        (RealLabels(1.0), Logistic()),
        (SIGNS, Multinomial(2)),
        (ClassLabels(3), Multinomial(4)),
        (RealLabels(2.0), Huber(1.0, 1.0)),
    ],
)
def test_a_loss_for_other_labels_is_refused_before_anything_is_spent(
    domain: LabelDomain, loss: Logistic | Multinomial | Huber
) -> None:
    ran, w = EventList(), np.zeros(3 * loss.outputs)
    curator = SamplingCurator(ran, SeededSampler(0))
    dataset = private(domain, domain.filler)
    planned = PrivateDataset.planned(dataset.shape)
    for handle, reader in ((dataset, curator), (planned, PlanningCurator())):
        for look in (
            lambda h: h.mean_gradient(loss, w),
            lambda h: h.sum_gradient(loss, w),
            lambda h: h.strongly_convex_argmin(
                loss, modulus=1.0, linear=w, tolerance=1e-3, start=w
            ),
            lambda h, r=reader: r.sample(h, FixedBatch(1)).sum_gradient(loss, w),
        ):
            with pytest.raises(InvalidParameter, match="defined for"):
                look(handle)
    assert ran.events == []


def test_labels_of_classes_are_public_facts_of_the_shape() -> None:
    shape = private(ClassLabels(3), 2.0).shape
    assert shape == DataShape(("all",), 3, 3, 1.0, REPLACE, ClassLabels(3))
    assert shape != DataShape(("all",), 3, 3, 1.0, REPLACE, ClassLabels(4))
    assert shape.parameters(Multinomial(3)) == 9


@pytest.mark.parametrize("domain", [*DOMAINS, ClassLabels(5000), RealLabels(1e-9), RealLabels(1e9)])
def test_labels_to_try_a_loss_with_are_of_the_domain_and_are_all_where_they_are_few(
    domain: LabelDomain,
) -> None:
    some = domain.some(1024)
    domain.require(some)
    assert len(np.unique(some)) == len(some) <= 1024
    if isinstance(domain, ClassLabels):
        assert len(some) == min(domain.classes, 1024)
        assert (some.min(), some.max()) == (0, domain.classes - 1)
    else:
        assert {*domain.extremes} <= {*some.tolist()}
