"""Files that are converted one by one: a bad one is a problem of its own."""

import pytest

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.files.conversion import Converted, NumberedKey, read_each
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError

KEYS = [NumberedKey(1, "a"), NumberedKey(2, "b"), NumberedKey(3, "c")]


def reads(error: Exception) -> list[str | Converted]:
    """Return what is read of three files, of which the second raises an error."""

    def read(numbered: NumberedKey) -> str:
        if numbered.key == "b":
            raise error
        return numbered.key

    return list(read_each(KEYS, read))


def test_a_removed_file_is_skipped() -> None:
    assert reads(ObjectNotFoundError("b")) == ["a", "c"]


@pytest.mark.parametrize(
    "error",
    [
        CorruptFileError("b", "JSON", "text"),
        StorageUnavailableError("b", "access is denied", transient=False),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem(error: Exception) -> None:
    assert reads(error) == ["a", Converted("b", {}, [str(error)], 1), "c"]


def test_a_store_that_does_not_answer_for_now_ends_the_conversion() -> None:
    with pytest.raises(StorageUnavailableError):
        reads(StorageUnavailableError("b", "it timed out", transient=True))
