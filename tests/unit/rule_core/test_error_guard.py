"""What stands between a hook's errors and the training."""

import logging
import os
from typing import Any

import pytest

from rule_core.error_guard import FailSafe

Log = pytest.LogCaptureFixture


class Counter(FailSafe):
    """Counts calls, and fails on request."""

    GUARDED = ("call",)

    def __init__(self, *, raises: bool = False) -> None:
        super().__init__(raises=raises)
        self.calls = 0

    def call(self, err: BaseException | None = None) -> int:
        """Count."""
        self.calls += 1
        if err is not None:
            raise err
        return self.calls

    alias = call


def test_what_is_guarded_answers_and_keeps_its_name() -> None:
    counter = Counter()
    assert (counter.call(), counter.call(err=None)) == (1, 2)
    assert (Counter.call.__name__, Counter.call.__doc__) == ("call", "Count.")


def test_every_name_of_a_guarded_method_is_guarded() -> None:
    assert Counter.alias is Counter.call
    with pytest.raises(KeyError, match="nothing"):
        type("Other", (Counter,), {"GUARDED": ("nothing",)})


def test_the_first_error_is_logged_and_turns_off(caplog: Log) -> None:
    counter = Counter()
    results = [counter.call(err) for err in (KeyError("first"), ValueError("second"), None)]
    assert (results, counter.calls, counter.is_off) == ([None] * 3, 1, True)
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == (
        "smdebug.hook",
        logging.ERROR,
        "The hook is off for the rest of the training job: KeyError: 'first'",
    )
    assert record.exc_info is not None


def test_an_error_is_raised_if_asked_to_and_only_once(caplog: Log) -> None:
    counter = Counter(raises=True)
    with pytest.raises(KeyError, match="first"):
        counter.call(KeyError("first"))
    assert counter.call(ValueError("second")) is None
    assert len(caplog.records) == 1


def test_an_error_behind_is_raised_by_the_next_call_only() -> None:
    strict, lax = Counter(raises=True), Counter()
    for counter in (strict, lax):
        counter._fail_in_background(OSError("behind"))
    assert lax.call() is None
    with pytest.raises(OSError, match="behind"):
        strict.call()
    assert strict.call() is None
    assert (strict.calls, lax.calls) == (0, 0)


@pytest.mark.parametrize("err", [KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_what_ends_the_process_passes(err: BaseException) -> None:
    counter = Counter()
    with pytest.raises(type(err)):
        counter.call(err)
    assert not counter.is_off


@pytest.mark.parametrize("raises", [True, False])
def test_in_a_forked_process_nothing_is_done(
    monkeypatch: pytest.MonkeyPatch, caplog: Log, raises: bool
) -> None:
    counter = Counter(raises=raises)
    counter._background_error = OSError("of the parent")
    monkeypatch.setattr(os, "getpid", lambda: counter._pid + 1)
    assert counter.call(KeyError("x")) is None
    assert (counter.calls, caplog.records) == (0, [])


def test_warnings_are_reported_once_a_subject(caplog: Log) -> None:
    counter = Counter()
    for subject in ("a", "b", "a"):
        counter._warn_once(subject, f"about {subject} at 100 %")
    said: list[Any] = [one.getMessage() for one in caplog.records]
    assert said == ["about a at 100 %", "about b at 100 %"]
