import pytest

from rule_core.clock import jittered, pause_after


@pytest.mark.parametrize(
    ("failures", "pause"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 3.0), (10_000, 3.0)]
)
def test_a_pause_doubles_up_to_the_longest(failures: int, pause: float) -> None:
    assert pause_after(failures, 0.5, 3.0) == pause


@pytest.mark.parametrize(("random", "pause"), [(0.0, 1.0), (0.5, 1.5), (1.0, 2.0)])
def test_a_pause_is_at_least_half_of_its_length(random: float, pause: float) -> None:
    assert jittered(2.0, lambda: random) == pause
    assert 1.0 <= jittered(2.0) <= 2.0
