"""FailedReads: a failed read is remembered for its step, and for nothing else."""

import pytest

from rule_core.exceptions import CorruptFileError, SMDebugError, TruncatedFileError
from rule_core.reading.file_problems import FailedReads
from rule_core.storage import ObjectNotFoundError, StorageUnavailableError

GONE = ObjectNotFoundError("events/1")
BUSY = StorageUnavailableError("events/1", "busy", transient=True)
CORRUPT = CorruptFileError("events/1", "a record", "none")
CUT = TruncatedFileError("events/1", "9 bytes", "3")


def fails(failures: FailedReads, key: str, what: str) -> Exception | None:
    try:
        failures.check(key, what)
    except SMDebugError as err:
        return err
    return None


@pytest.mark.parametrize(
    ("err", "others"), [(GONE, GONE), (BUSY, BUSY), (CORRUPT, None), (CUT, None)]
)
def test_failure_of_a_file_is_that_of_its_tensors(err: Exception, others: Exception | None) -> None:
    failures = FailedReads()
    failures.turn_to(3)
    failures.add("events/1", "loss", err)
    assert fails(failures, "events/1", "loss") is err
    assert fails(failures, "events/1", "bias") is others
    assert fails(failures, "events/2", "loss") is None


def test_failure_is_forgotten_with_the_step() -> None:
    failures = FailedReads()
    failures.turn_to(3)
    failures.add("events/1", "loss", BUSY)
    failures.turn_to(3)
    assert fails(failures, "events/1", "loss") is BUSY
    failures.turn_to(4)
    assert fails(failures, "events/1", "loss") is None


def test_nothing_is_remembered_while_no_step_is_judged() -> None:
    failures = FailedReads()
    failures.add("events/1", "loss", BUSY)
    assert fails(failures, "events/1", "loss") is None
