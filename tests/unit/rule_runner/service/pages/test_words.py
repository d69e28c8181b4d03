import pytest

from rule_core.severity import Severity
from rule_runner.results.status import Outcome
from rule_runner.service.pages.words import NAME_LENGTH, short, split_path, verdict, verdict_so_far


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
