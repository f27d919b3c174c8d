"""Laws of trials at scale: the same scores on every backend, from any store, after any stop."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from dpledger.accounting.numbers.notions import Gdp
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.replay import replay_attack, replay_chunks
from dpledger.audits.trials import (
    Attacked,
    Dask,
    Loky,
    Ray,
    ScoreStore,
    Serial,
    TrialExperiment,
    attack_trials,
    trial_scores,
    trials_at_once,
)
from dpledger.mechanisms import InvalidParameter
from dpledger.mechanisms.extras import MissingExtra


def builder():
    """Return a function that travels by value: workers cannot import this file."""

    def build():
        import numpy as np

        from dpledger.audits.neighbours import flip_label
        from dpledger.mechanisms import Adjacency
        from dpledger.solvers import ConstantSteps, DpAdmm, Logistic

        generator = np.random.default_rng(5)
        data = AuditDataset(
            generator.normal(size=(60, 4)),
            np.where(generator.random(60) < 0.5, -1.0, 1.0),
            adjacency=Adjacency.REPLACE_ONE,
            row_bound=1.0,
            party_of=np.arange(60) % 3,
            parties=("a", "b", "c"),
        )
        pair = flip_label(data, index=7, loss=Logistic())
        solver = DpAdmm(4, 3.0, ConstantSteps(0.5))
        return Attacked(solver.solve, pair.dataset, pair.neighbour)

    return build


def experiment(**changes):
    return TrialExperiment(
        **({"build": builder(), "name": "test", "seed": 11, "chunk": 40} | changes)
    )


def numbers(found):
    return np.concatenate(
        [found.attack.dataset, found.attack.neighbour, found.null.dataset, found.null.neighbour]
    )


SERIAL = numbers(trial_scores(experiment(), trials=250, null_trials=100))


def test_the_serial_scores_are_those_of_the_chunks_one_after_another():
    found = builder()()
    chunks = list(
        replay_chunks(found.solve, found.dataset, found.neighbour, trials=250, seed=11, chunk=40)
    )
    attack = np.concatenate([c.attack.dataset for c in chunks])
    np.testing.assert_array_equal(attack, SERIAL[:250])
    null = np.concatenate([c.null.dataset for c in chunks])
    np.testing.assert_array_equal(null[:80], SERIAL[500:580])
    assert SERIAL.size == 2 * 250 + 2 * 100
    assert len(np.unique(SERIAL)) == SERIAL.size


@pytest.mark.parametrize(
    "backend",
    [Loky(2), Dask(jobs=1), Ray(jobs=2)],
    ids=lambda backend: type(backend).__name__,
)
def test_every_backend_gives_the_same_numbers(backend):
    needed = {Dask: "distributed", Ray: "ray"}
    if type(backend) in needed:
        pytest.importorskip(needed[type(backend)])
    found = trial_scores(experiment(), trials=250, null_trials=100, backend=backend)
    np.testing.assert_array_equal(numbers(found), SERIAL)


def test_a_dask_cluster_is_found_by_its_address():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        backend = Dask(address=cluster.scheduler_address)
        found = trial_scores(experiment(), trials=250, null_trials=100, backend=backend)
    np.testing.assert_array_equal(numbers(found), SERIAL)


@pytest.mark.slow
def test_a_ray_cluster_is_found_by_its_address_and_left_running():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        for _ in range(2):
            found = trial_scores(
                experiment(), trials=250, null_trials=100, backend=Ray(address=cluster.address)
            )
            np.testing.assert_array_equal(numbers(found), SERIAL)
            assert not ray.is_initialized()
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_ray_ends_with_whoever_stops_early_and_with_a_task_that_fails():
    ray = pytest.importorskip("ray")
    results = Ray(jobs=1).map(abs, [-1, -2, -3])
    assert next(results) == 1
    assert ray.is_initialized()
    results.close()
    assert not ray.is_initialized()
    with pytest.raises(InvalidParameter, match="seed=-1"):
        list(Ray(jobs=1).map(lambda seed: experiment(seed=seed), [-1]))
    assert not ray.is_initialized()


def test_a_worker_builds_once_for_one_experiment_and_anew_for_the_next(tmp_path):
    note, build = tmp_path / "builds", builder()

    def noting():
        with open(note, "a") as file:
            file.write("built\n")
        return build()

    settings = {"trials": 80, "null_trials": 40, "backend": Loky(1)}
    first = numbers(trial_scores(experiment(build=noting), **settings))
    assert note.read_text().count("built") == 1
    other = numbers(trial_scores(experiment(build=noting, seed=12), **settings))
    assert note.read_text().count("built") == 2
    assert not np.any(first == other)


def test_a_stopped_attack_goes_on_where_it_stopped(tmp_path):
    calls = []

    def stop(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise KeyboardInterrupt

    path = tmp_path / "scores.sqlite"
    settings = {"trials": 250, "null_trials": 100}
    with ScoreStore(path) as store, pytest.raises(KeyboardInterrupt):
        trial_scores(experiment(), **settings, store=store, progress=stop)
    assert calls == [(80, 700), (160, 700), (240, 700)]

    counted = CountedBackend()
    with ScoreStore(path) as store:
        found = trial_scores(experiment(), **settings, store=store, backend=counted)
    np.testing.assert_array_equal(numbers(found), SERIAL)
    assert counted.tasks == 7 + 3 - 3


def test_more_trials_reuse_the_full_chunks(tmp_path):
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        trial_scores(experiment(), trials=100, null_trials=40, store=store)
        counted = CountedBackend()
        found = trial_scores(
            experiment(), trials=250, null_trials=100, store=store, backend=counted
        )
    np.testing.assert_array_equal(numbers(found), SERIAL)
    # of 7 + 3 chunks, two of the attack and one of the null control were full
    assert counted.tasks == 7


@pytest.mark.parametrize("change", [{"seed": 12}, {"chunk": 50}, {"name": "other"}], ids=str)
def test_a_store_keeps_experiments_apart(tmp_path, change):
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        trial_scores(experiment(), trials=80, null_trials=40, store=store)
        counted = CountedBackend()
        trial_scores(experiment(**change), trials=80, null_trials=40, store=store, backend=counted)
    assert counted.tasks == 3


class CountedBackend(Serial):
    """Runs in this process and counts."""

    tasks = 0

    def map(self, function, tasks):
        for task in tasks:
            type(self).tasks += 1
            yield function(task)

    def __init__(self):
        type(self).tasks = 0


KILLED = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from test_experiment import ScoreStore, experiment, trial_scores

def kill(done, total):
    if done >= 240:
        os.kill(os.getpid(), signal.SIGKILL)

with ScoreStore({path!r}) as store:
    trial_scores(experiment(), trials=250, null_trials=100, store=store, progress=kill)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_attack_goes_on_where_it_was_killed(tmp_path):
    path = str(tmp_path / "scores.sqlite")
    script = KILLED.format(folder=os.path.dirname(__file__), path=path)
    died = subprocess.run([sys.executable, "-c", script], check=False)
    assert died.returncode == -signal.SIGKILL
    counted = CountedBackend()
    with ScoreStore(path) as store:
        found = trial_scores(
            experiment(), trials=250, null_trials=100, store=store, backend=counted
        )
    np.testing.assert_array_equal(numbers(found), SERIAL)
    assert counted.tasks == 7


def test_the_result_is_that_of_the_attack_in_one_process():
    found = builder()()
    settings = {"claimed": Gdp(1), "delta": 1e-5, "confidence": 0.95}
    here = replay_attack(
        found.solve, found.dataset, found.neighbour, trials=200, seed=11, chunk=40, **settings
    )
    assert attack_trials(experiment(), trials=200, **settings) == here


@pytest.mark.parametrize(
    ("backend", "module", "extra"),
    [(Dask(), "distributed", "dask"), (Ray(), "ray", "ray")],
    ids=["dask", "ray"],
)
def test_a_missing_extra_is_named(monkeypatch, backend, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'dpledger\[{extra}\]'"):
        list(backend.map(abs, [1]))


def test_trials_at_once_are_fewer_of_wide_or_many_messages():
    assert trials_at_once(parties=5, width=20) == 1000
    assert trials_at_once(parties=5, width=20, messages=50) == 1000
    assert trials_at_once(parties=5, width=20, messages=6_711) == 99
    assert trials_at_once(parties=100, width=104) == 100
    assert trials_at_once(parties=1000, width=10_000) == 1


@pytest.mark.parametrize("change", [{"seed": -1}, {"chunk": 0}], ids=str)
def test_numbers_out_of_range_are_refused(change):
    with pytest.raises(InvalidParameter):
        experiment(**change)


@pytest.mark.parametrize("backend", [Loky, lambda n: Dask(jobs=n), lambda n: Ray(jobs=n)])
def test_backends_need_a_job(backend):
    with pytest.raises(InvalidParameter, match="jobs"):
        backend(0)
