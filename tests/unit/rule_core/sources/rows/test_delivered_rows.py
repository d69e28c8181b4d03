"""DeliveredRows: rows delivered before are recognised in a rewritten file."""

import pytest

from rule_core.sources.rows.delivered_rows import MARKS, DeliveredRows, RowsDifferError

COUNTS = [1, 2, MARKS - 1, MARKS, MARKS + 1, 3 * MARKS, 3 * MARKS + 1]


@pytest.mark.parametrize("count", COUNTS)
def test_rows_that_were_given_are_not_new(count: int) -> None:
    rows = DeliveredRows()
    assert all(rows.is_new(row) for row in range(count))
    for _ in range(2):
        rows.restart()
        assert not any(rows.is_new(row) for row in range(count))
        assert rows.is_new(count)
        count += 1


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_another_row_is_noticed_before_new_ones_are_given(count: int, place: float) -> None:
    rows = DeliveredRows()
    for row in range(count):
        rows.is_new(row)
    rows.restart()
    other = int((count - 1) * place)
    again = (-row - 1 if row == other else row for row in range(count))
    with pytest.raises(RowsDifferError):
        assert not any(map(rows.is_new, again))
    noticed = rows._position - 1
    assert other <= noticed < count
    if other < MARKS:
        assert noticed == other


def test_a_file_with_fewer_rows_waits_for_more() -> None:
    rows = DeliveredRows()
    for row in range(10):
        rows.is_new(row)
    rows.restart()
    assert not any(rows.is_new(row) for row in range(5))
    rows.restart()
    assert [rows.is_new(row) for row in range(12)] == [False] * 10 + [True] * 2


def test_memory_does_not_grow_with_the_rows() -> None:
    rows = DeliveredRows()
    for row in range(50_000):
        rows.is_new(row)
    assert len(rows._marks) < MARKS + 50


@pytest.mark.parametrize("known", [0, 3, MARKS - 1, MARKS, 2 * MARKS + 7])
def test_many_rows_at_once_are_known_as_one_by_one(known: int) -> None:
    rows = [(number,) for number in range(3 * MARKS)]
    one_by_one, at_once = DeliveredRows(), DeliveredRows()
    for row in rows[:known]:
        one_by_one.is_new(row)
        at_once.is_new(row)
    one_by_one.restart()
    at_once.restart()
    assert sum(not one_by_one.is_new(row) for row in rows) == known
    assert at_once.count_delivered(rows) == known
    assert vars(at_once) == vars(one_by_one)
