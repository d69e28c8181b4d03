"""watch with a baseline: the rule joins the rules of each assignment."""

from pathlib import Path

import pytest

from rule_runner.commands.watch import WatchRequest, with_baseline
from rule_runner.errors import UsageError
from rule_runner.watch.config import Assignment

AUTO = Assignment(rules=("auto",))


def test_the_rule_joins_others_with_absolute_paths() -> None:
    joined = with_baseline(AUTO, WatchRequest(baseline="good.json", trend="runs"))
    assert joined.rules == ("auto", "Baseline")
    assert joined.parameters == (
        f"Baseline.baseline={Path('good.json').absolute()}",
        f"Baseline.trend={Path('runs').absolute()}",
    )
    assert joined.is_fitting
    assert not with_baseline(Assignment(rules=("Overfit",)), WatchRequest(baseline="x")).is_fitting


@pytest.mark.parametrize("assignment", [AUTO, Assignment(job="job.yaml"), Assignment(ignore=True)])
def test_without_a_baseline_nothing_changes(assignment: Assignment) -> None:
    assert with_baseline(assignment, WatchRequest()) == assignment


def test_what_is_ignored_stays_so() -> None:
    ignored = Assignment(ignore=True)
    assert with_baseline(ignored, WatchRequest(baseline="good.json")) == ignored


def test_a_job_file_names_the_rule_itself() -> None:
    with pytest.raises(UsageError, match="cannot be used with a job file"):
        with_baseline(Assignment(job="job.yaml"), WatchRequest(baseline="good.json"))
    with pytest.raises(UsageError, match="--trend requires --baseline"):
        with_baseline(AUTO, WatchRequest(trend="runs"))
