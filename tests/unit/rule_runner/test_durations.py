"""Durations as people write them."""

import pytest

from rule_runner.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("30m", 1800), ("12h", 43200), ("7d", 604800), ("8w", 4838400)]
)
def test_a_number_with_a_unit(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "0s", "-1s", "1.5h", "1 h", "1y", "1234567890s", "s"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 90s, 30m, 12h, 7d or 8w, got"):
        seconds_of(text)


def test_units_may_be_limited() -> None:
    assert seconds_of("1h", "hd") == 3600
    with pytest.raises(ValueError, match="such as 12h or 7d, got '1m'"):
        seconds_of("1m", "hd")
