from pathlib import Path
from typing import Any

import pytest
import served

from rule_core.severity import Severity
from rule_runner.index.database import WatchDatabase
from rule_runner.index.states import WatchState
from rule_runner.results.status import Outcome
from rule_runner.service.pages.words import (
    NAME_LENGTH,
    short,
    split_path,
    verdict,
    verdict_so_far,
    waits_for,
)


def test_every_outcome_has_a_sign_of_its_own() -> None:
    shown = [verdict(outcome) for outcome in Outcome] + [verdict("IssuesFound", Severity.WARNING)]
    assert len({how.name for how in shown}) == len(shown)
    assert len({how.sign for how in shown}) == len(shown) - 1  # stopping and stopped


def test_an_unknown_outcome_is_shown_as_it_is() -> None:
    assert verdict("Later\x1b").word == "Later\\x1b"
    assert verdict("").word == "No verdict yet"


def test_text_is_printable_and_short() -> None:
    assert short("a\u202eb") == "a\\u202eb"
    assert len(short("x" * 5000)) == NAME_LENGTH


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/runs/sweep/a", ("a", "/runs/sweep")),
        ("s3://bucket/job-1/debug-output", ("job-1", "s3://bucket")),
        ("csv:/runs/log.csv", ("log.csv", "csv:/runs")),
        ("/a", ("a", "")),
    ],
)
def test_the_name_of_a_trial_and_its_folder(path: str, parts: tuple[str, str]) -> None:
    assert split_path(path) == parts


def test_the_findings_of_a_running_trial_are_its_verdict_so_far() -> None:
    assert verdict_so_far("", None) is None
    found = verdict_so_far("", Severity.WARNING)
    assert found is not None
    assert found.word == "Warning"
    judged = verdict_so_far("NoIssuesFound", None)
    assert judged is not None
    assert judged.sign == "✓"


@pytest.mark.parametrize(
    ("fields", "hindrance", "text"),
    [
        ({}, "", "It waits for a free slot."),
        ({"started_at": 5.0}, "", "It waits for its next turn."),
        ({"started_at": 5.0, "not_before": 15.0}, "", "It waits for new data."),
        (
            {"started_at": 5.0, "not_before": 15.0, "restarts": 1},
            "",
            "Its evaluation ended without a verdict and starts again soon.",
        ),
        ({"not_before": 86400.0}, "", "It waits for a free slot."),
        ({}, "The disk is full.", "The disk is full."),
        ({"state": WatchState.RUNNING}, "The disk is full.", ""),
    ],
)
def test_a_queued_trial_says_what_it_waits_for(
    tmp_path: Path, fields: dict[str, Any], hindrance: str, text: str
) -> None:
    default = {"state": WatchState.QUEUED, "started_at": None, "ended_at": None}
    with WatchDatabase(tmp_path / "index.sqlite") as database:
        trial = served.add(database, "/runs/a", **(default | fields))
    assert waits_for(trial, 10.0, hindrance) == text
