"""RateLimit: how many requests are let in at once, and in the long run."""

from evaluating import WoundClock

from rule_runner.service.access.rate_limit import RateLimit


def test_a_burst_is_let_in_and_then_the_rate() -> None:
    clock = WoundClock()
    limit = RateLimit(clock, rate=0.5, burst=3)
    assert [limit.wait("a") for _ in range(4)] == [0, 0, 0, 2]
    assert limit.wait("b") == 0
    clock.sleep(2)
    assert [limit.wait("a"), limit.wait("a")] == [0, 2]
    clock.sleep(1000)
    assert [limit.wait("a") for _ in range(4)] == [0, 0, 0, 2]
