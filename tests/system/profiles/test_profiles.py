"""All rules about profiles judge labelled jobs, healthy ones and ones with a fault."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import evaluating
import pytest
from click.testing import CliRunner
from judging_profiles import JUDGING, measure
from known_profile_deviations import KNOWN_PROFILES
from measuring import Measured
from profile_jobs import all_jobs, sample
from profile_tables import LABELS, jobs_table
from scoring import scores, wrong
from tables import RESULTS

from builtin_rules.profiler_table import PROFILER_RULES
from rule_runner.cli import main

JOBS = all_jobs()
LEAST = 0.95
# They summarise, and find nothing themselves.
SUMMARIES = {"OverallFrameworkMetrics", "OverallSystemUsage", "ProfilerReport"}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    evaluating.log_nothing()
    yield
    evaluating.log_nothing()


def check(measured: list[Measured]) -> None:
    """Require precision and recall of each rule, and no deviation that is not known."""
    for rule, score in scores(JOBS, measured).items():
        for share in (score.precision, score.recall):
            assert math.isnan(share) or share >= LEAST, (rule, wrong(JOBS, measured))


def unknown(measured: list[Measured]) -> list[object]:
    """Return the wrong verdicts that are no known deviations."""
    return [
        (kind, verdict)
        for kind, verdict in wrong(JOBS, measured)
        if (verdict.rule, verdict.run) not in KNOWN_PROFILES
    ]


def test_there_are_enough_jobs_of_each_kind() -> None:
    labels = Counter((LABELS[job.kind], job.healthy) for job in JOBS.values())
    assert len(JOBS) >= 160
    assert len(labels) == 4
    assert min(labels.values()) >= 28


def test_all_rules_that_find_something_judge() -> None:
    assert {*JUDGING} == {*PROFILER_RULES} - SUMMARIES


@pytest.mark.parametrize("rule", JUDGING)
def test_rule_has_faults_to_find(rule: str) -> None:
    assert sum(rule in job.fires for job in JOBS.values()) >= 4


def test_jobs_name_rules_that_judge() -> None:
    for job in JOBS.values():
        assert {*job.fires, *job.may} <= {*JUDGING}, job.name
        assert not job.fires & {*job.may}, job.name
        assert bool(job.fault) == bool(job.fires), job.name


def test_the_results_list_the_jobs_as_they_are() -> None:
    assert (RESULTS / "profile_jobs.csv").read_text("utf-8") == jobs_table(JOBS).csv()


def test_sample(tmp_path: Path) -> None:
    names = sample(JOBS)
    measured = list(measure(tmp_path, names))
    assert len(measured) > 10
    assert not unknown(measured)


def test_a_recorded_job(tmp_path: Path) -> None:
    measured = list(measure(tmp_path, ["checkpoint_stalls"]))
    assert not unknown(measured)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("job", "function"),
    [
        ("python_collects_garbage", "gc.collect"),
        ("python_parses_its_log", "raw_decode"),
        ("python_changes_pixels", "brighten"),
        ("python_tokenizes", "findall"),
    ],
)
def test_python_profiles_name_the_slow_function(job: str, function: str, tmp_path: Path) -> None:
    JOBS[job].train(tmp_path / "job")
    done = CliRunner().invoke(main, ["profile", "python", str(tmp_path / "job"), "-n", "8"])
    assert function in done.output


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_all(tmp_path: Path) -> None:
    check(list(measure(tmp_path, JOBS)))
