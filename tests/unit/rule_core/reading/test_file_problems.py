"""Problems of files are logged once; failed reads are remembered for their step only."""

from contextlib import suppress

import pytest

from rule_core.exceptions import CorruptFileError, SMDebugError, TruncatedFileError
from rule_core.format.paths import StepFile
from rule_core.reading.file_problems import FailedReads, TrialFileProblems
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError

GONE = ObjectNotFoundError("events/1")
BUSY = StorageUnavailableError("events/1", "busy", transient=True)
CORRUPT = CorruptFileError("events/1", "a record", "none")
CUT = TruncatedFileError("events/1", "9 bytes", "3")


def test_a_problem_of_a_trial_that_is_opened_again_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(3):
        TrialFileProblems("runs/a").report("log.jsonl", "It is not a JSON object.")
    TrialFileProblems("runs/b").report("log.jsonl", "It is not a JSON object.")
    assert [record.getMessage() for record in caplog.records] == [
        f"Trial 'runs/{name}': 'log.jsonl': It is not a JSON object." for name in "ab"
    ]


def test_damaged_file_is_logged_once_for_all_its_tensors(caplog: pytest.LogCaptureFixture) -> None:
    problems = TrialFileProblems("/t")
    for key in ("events/1", "events/2"):
        for offset in range(41):
            err = TruncatedFileError(key, f"9 bytes at {offset}", "3")
            problems.cannot_read_tensor(key, StepFile(3, "worker_0"), err)
    assert [record.getMessage().split("'")[3] for record in caplog.records] == [
        "events/1",
        "events/2",
    ]
    assert [text.partition("9 bytes at ")[2][:2] for text in problems.problems.values()] == [
        "0,",
        "0,",
    ]


def fails(failures: FailedReads, key: str, what: str) -> Exception | None:
    try:
        with failures.remembered(key, what):
            return None
    except SMDebugError as err:
        return err


def fail(failures: FailedReads, err: Exception) -> None:
    with suppress(SMDebugError), failures.remembered("events/1", "loss"):
        raise err


@pytest.mark.parametrize(
    ("err", "others"), [(GONE, GONE), (BUSY, BUSY), (CORRUPT, None), (CUT, None)]
)
def test_failure_of_a_file_is_that_of_its_tensors(err: Exception, others: Exception | None) -> None:
    failures = FailedReads()
    failures.turn_to(3)
    fail(failures, err)
    assert fails(failures, "events/1", "loss") is err
    assert fails(failures, "events/1", "bias") is others
    assert fails(failures, "events/2", "loss") is None


def test_failure_is_forgotten_with_the_step() -> None:
    failures = FailedReads()
    failures.turn_to(3)
    fail(failures, BUSY)
    failures.turn_to(3)
    assert fails(failures, "events/1", "loss") is BUSY
    failures.turn_to(4)
    assert fails(failures, "events/1", "loss") is None


def test_nothing_is_remembered_while_no_step_is_judged() -> None:
    failures = FailedReads()
    fail(failures, BUSY)
    assert fails(failures, "events/1", "loss") is None


def test_values_of_secrets_are_not_kept() -> None:
    problems = TrialFileProblems("run")
    problems.report("log.csv: column 'api_key'", "'planted' in line 3 is not a number.")
    assert problems.problems == {"log.csv: column 'api_key'": "*** in line 3 is not a number."}
