"""no_refresh, refresh, snapshot: nested, restored, also after exceptions; and parameter texts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rawtrial
from evaluating import END, WoundClock
from memory_store import MemoryStore

from rule_core.exceptions import NoMoreData, StepUnavailable
from rule_core.reading.native_index import NativeIndex
from rule_core.trials.refresh import no_refresh, parse_bool, parse_list_from_str, refresh
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.trial import Trial


def step(number: int) -> dict[str, bytes]:
    return rawtrial.step_files(number, {"loss": np.float32([1])})


def trial() -> tuple[Trial, dict[str, bytes]]:
    files = {rawtrial.collections_key(): rawtrial.collections({}), **step(0)}
    index = NativeIndex(MemoryStore(files))
    index.refresh()
    return Trial("t", "/t", index, WoundClock()), files


def test_no_refresh_holds_back_new_files() -> None:
    one, files = trial()
    with no_refresh(one):
        files |= step(1)
        assert one.steps() == [0]
        with refresh(one):
            assert one.steps() == [0, 1]
        files |= step(2)
        assert one.steps() == [0, 1]
    assert one.steps() == [0, 1, 2]


@pytest.mark.parametrize("block", [no_refresh, refresh])
def test_the_blocks_give_what_they_are_over(block: Callable[..., Any]) -> None:
    one, trials = trial()[0], [trial()[0]]
    with block(one) as given, block(trials) as several:
        assert (given is one, several is trials) == (True, True)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("block", [no_refresh, refresh])
def test_what_held_before_holds_after(block: Callable[..., Any], before: bool) -> None:
    one, two = trial()[0], trial()[0]
    one.dynamic_refresh = before
    with block([one, two]):
        assert one.dynamic_refresh is two.dynamic_refresh is (block is refresh)
    assert (one.dynamic_refresh, two.dynamic_refresh) == (before, True)
    with pytest.raises(KeyError), block((one, two)):
        raise KeyError
    assert (one.dynamic_refresh, two.dynamic_refresh) == (before, True)


def test_nesting_in_any_order() -> None:
    one, _ = trial()
    held = []
    with refresh(one):
        with no_refresh(one):
            with no_refresh([one]):
                held.append(one.dynamic_refresh)
            held.append(one.dynamic_refresh)
        held.append(one.dynamic_refresh)
    assert held == [False, False, True]


def test_one_trial_twice_in_a_list() -> None:
    one, _ = trial()
    with no_refresh([one, one]):
        pass
    with snapshot([one, one], 3):
        assert one.horizon == 3
    assert (one.dynamic_refresh, one.horizon) == (True, None)


def test_snapshots_nest_and_are_restored_after_exceptions() -> None:
    one, two = trial()[0], trial()[0]
    with snapshot([one], 5):
        with pytest.raises(KeyError), snapshot(iter([one, two]), 3):  # noqa: PT012 - the snapshot is looked at inside
            assert (one.horizon, two.horizon, one.dynamic_refresh) == (3, 3, False)
            raise KeyError
        assert (one.horizon, two.horizon) == (5, None)
    assert (one.horizon, one.dynamic_refresh) == (None, True)


@pytest.mark.parametrize("before", [True, False])
def test_wait_for_steps_leaves_refreshing_as_it_was(before: bool) -> None:
    one, files = trial()
    one.dynamic_refresh = before
    files |= step(4)
    one.wait_for_steps([0, 4])
    assert one.dynamic_refresh is before
    with pytest.raises(StepUnavailable):
        one.wait_for_steps([2])
    assert one.dynamic_refresh is before
    files[END] = b""
    with pytest.raises(NoMoreData):
        one.wait_for_steps([4, 5])
    assert one.dynamic_refresh is before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, []),
        ("", []),
        (" ", []),
        ("a, b ,,c", ["a", "b", "c"]),
        (["a", 1], ["a", "1"]),
        (("a",), ["a"]),
    ],
    ids=repr,
)
def test_lists(text: object, expected: list[str]) -> None:
    assert parse_list_from_str(text) == expected


def test_lists_with_another_delimiter() -> None:
    assert parse_list_from_str("a,b;c", delimiter=";") == ["a,b", "c"]
    with pytest.raises(
        TypeError, match=r"^A list must be a string with ';' between its parts, got 3"
    ):
        parse_list_from_str(3, ";")


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize("spelled", [("True", "FALSE"), ("yes", "No"), (" 1 ", "0"), (1, 0)])
def test_booleans(spelled: tuple[object, object], expected: bool) -> None:
    assert parse_bool(spelled[not expected]) is expected
    assert parse_bool(expected) is expected
    assert parse_bool(None, default=expected) is expected


@pytest.mark.parametrize("text", ["", "on", "2", "truee", 0.5])
def test_what_spells_neither(text: object) -> None:
    with pytest.raises(ValueError, match=r"^A boolean must be true or false, got "):
        parse_bool(text)
