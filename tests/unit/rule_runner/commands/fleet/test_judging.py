import pytest

from rule_core.storage.base import StorageUnavailableError
from rule_runner.commands.fleet.judging import may_pass
from rule_runner.errors import OutputError, TrialError


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (TrialError("no trial"), False),
        (caused(TrialError("x"), StorageUnavailableError("k", "503", transient=True)), True),
        (caused(TrialError("x"), StorageUnavailableError("k", "denied")), False),
        (caused(OutputError("in use"), BlockingIOError()), True),
        (caused(OutputError("full"), OSError(28, "No space left on device")), False),
        (caused(TrialError("x"), caused(TrialError("y"), BlockingIOError())), True),
    ],
)
def test_what_may_pass_is_worth_a_retry(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes
