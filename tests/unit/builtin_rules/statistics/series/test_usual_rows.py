"""UsualRows: rows that leave a level do not count for it."""

from builtin_rules.statistics.series.usual_rows import BACK_ROWS, UsualRows


def test_rows_that_are_away_do_not_move_the_level() -> None:
    usual = UsualRows()
    for row in range(30):
        usual.add(float(row % 2), is_away=False)
    before = usual.level(), usual.latest_level(), usual.spread(), len(usual)
    for count in range(1, 4):
        usual.add(100.0, is_away=True)
        assert usual.away == count
    assert (usual.level(), usual.latest_level(), usual.spread(), len(usual)) == before
    usual.add(1.0, is_away=False)
    assert usual.away == 0


def test_the_latest_level_follows_a_growth() -> None:
    usual = UsualRows()
    for row in range(101):
        usual.add(float(row), is_away=False)
    assert (usual.level(), usual.latest_level()) == (50.0, 95.5)


def test_a_series_is_back_after_enough_usual_rows() -> None:
    usual = UsualRows()
    usual.add(9.0, is_away=True)
    for _ in range(BACK_ROWS - 1):
        usual.add(1.0, is_away=False)
        assert not usual.is_back
    usual.add(1.0, is_away=False)
    assert usual.is_back
    usual.add(9.0, is_away=True)
    assert not usual.is_back
