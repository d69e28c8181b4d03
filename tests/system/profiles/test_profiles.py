"""All rules about profiles judge labelled jobs, healthy ones and ones with a fault."""

import math
from collections.abc import Iterator
from pathlib import Path

import evaluating
import pytest
from judging_profiles import JUDGING, measure
from measuring import Measured
from profile_jobs import GENERATED, RECORDED, all_jobs, sample
from scoring import scores, wrong

JOBS = all_jobs()
LEAST = 0.95


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    evaluating.log_nothing()
    yield
    evaluating.log_nothing()


def check(measured: list[Measured]) -> None:
    """Require precision and recall of each rule that has a fault to find."""
    for rule, score in scores(JOBS, measured).items():
        for share in (score.precision, score.recall):
            assert math.isnan(share) or share >= LEAST, (rule, wrong(JOBS, measured))


def test_there_are_enough_jobs_of_each_kind() -> None:
    kinds = [job.kind for job in JOBS.values()]
    assert len(kinds) >= 85
    assert {*kinds} == {RECORDED, GENERATED}


def test_each_rule_has_a_fault_to_find() -> None:
    fires = {rule for job in JOBS.values() for rule in job.fires}
    assert fires >= {*JUDGING} - {"Dataloader"}


def test_sample(tmp_path: Path) -> None:
    names = [name for name in sample(JOBS, JUDGING) if JOBS[name].kind == GENERATED]
    measured = list(measure(tmp_path, names))
    assert len(measured) > 10
    assert not wrong(JOBS, measured)


def test_a_recorded_job(tmp_path: Path) -> None:
    (measured,) = measure(tmp_path, ["checkpoint_stalls"])
    assert not wrong(JOBS, [measured])


@pytest.mark.nightly
def test_all(tmp_path: Path) -> None:
    check(list(measure(tmp_path, JOBS)))
