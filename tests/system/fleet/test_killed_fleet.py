"""What judges a fleet is killed at random: nothing is lost, and nothing twice."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import evaluating
import pytest
import ray_cluster
import slurm_cluster
import uncounted
from fleet_kills import ArrayRun, DriverRun, KilledPlan, RayRun, survive


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    evaluating.log_nothing()
    yield
    evaluating.log_nothing()


@pytest.mark.parametrize(
    ("trials", "kills"), [(3, 2), pytest.param(20, 60, marks=pytest.mark.nightly)]
)
def test_killed_processes(tmp_path: Path, trials: int, kills: int) -> None:
    start = partial(DriverRun, executor="local:2", environment=uncounted.environment())
    done = survive(KilledPlan(tmp_path, trials), start, kills=kills, seed=3)
    assert {*done} == {"driver", "worker"}


@pytest.mark.nightly
@pytest.mark.parametrize(("trials", "kills"), [(20, 60)])
def test_killed_cluster_of_ray(tmp_path: Path, trials: int, kills: int) -> None:
    pytest.importorskip("ray", reason="ray is not installed.")
    with ray_cluster.running() as cluster:
        start = partial(RayRun, cluster=cluster)
        done = survive(KilledPlan(tmp_path, trials), start, kills=kills, seed=1)
    assert {*done} == {"driver", "worker", "node"}


@pytest.mark.skipif(
    bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "Slurm is there."
)
@pytest.mark.parametrize(
    ("trials", "kills"), [(8, 3), pytest.param(40, 30, marks=pytest.mark.nightly)]
)
def test_killed_cluster_of_slurm(tmp_path: Path, trials: int, kills: int) -> None:
    with slurm_cluster.running(tmp_path / "slurm") as cluster:
        start = partial(ArrayRun, cluster=cluster)
        done = survive(KilledPlan(tmp_path, trials), start, kills=kills, seed=2)
    assert {*done} == {"task", "node", "controller"}
