"""Recoveries: a condition is clear for so many rows in a row, tensor by tensor."""

from typing import Any

from builtin_rules.statistics.series.recoveries import Recoveries

A, B = ("a", "w"), ("b", "w")


class Finder:
    """A rule that remembers what it found."""

    def __init__(self) -> None:
        self.found_at: list[tuple[Any, ...]] = []

    def found(self, *where: Any, recovers: bool) -> None:
        assert recovers
        self.found_at.append(where)


def test_a_condition_recovers_once_after_so_many_clear_rows_in_a_row() -> None:
    rule: Any = Finder()
    recoveries = Recoveries(rule, 3)
    recoveries.add(0, (), {A: True, B: True})
    recoveries.add(1, [A], {A: False, B: True})
    for step in range(2, 9):
        recoveries.add(step, (), {A: step != 3, B: True})
    assert rule.found_at == [(6, *A)]


def test_rows_that_do_not_judge_a_tensor_change_nothing() -> None:
    rule: Any = Finder()
    recoveries = Recoveries(rule, 2)
    recoveries.add(0, [A, B], {})
    for step in range(1, 5):
        recoveries.add(step, (), {A: True} if step % 2 else {})
    assert rule.found_at == [(3, *A)]
    assert recoveries.clear_rows == {B: 0}
