"""Which alerts become messages now, and which wait."""

import pytest

from rule_core.severity import Severity
from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.alerting import FEW, messages_due
from rule_runner.watch.config import AlertsConfig

CONFIG = AlertsConfig(sinks=("apprise:json://localhost",), most_per_hour=5, digest_every="10m")
NOW = 10_000.0


def alerts(count: int) -> list[Alert]:
    return [
        Alert(
            trial=number,
            path=f"/runs/{number}",
            output=f"/out/{number}",
            rule="Loss",
            outcome="IssuesFound",
            severity=Severity.ERROR,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "singles", "last_digest", "expected"),
    [
        pytest.param(0, 0, None, [], id="nothing"),
        pytest.param(1, 0, None, [1], id="one"),
        pytest.param(FEW, 0, NOW - 1, [1, 1, 1], id="a-few-just-after-a-digest"),
        pytest.param(FEW + 1, 0, None, [4], id="more-become-a-digest"),
        pytest.param(FEW + 1, 0, NOW - 599, [], id="which-waits"),
        pytest.param(FEW + 1, 0, NOW - 600, [4], id="until-it-is-due"),
        pytest.param(FEW + 1, 0, NOW + 5, [4], id="clock-was-set-back"),
        pytest.param(2, 3, None, [1, 1], id="as-many-as-the-hour-allows"),
        pytest.param(2, 4, None, [2], id="more-than-the-hour-allows"),
        pytest.param(1, 5, NOW - 1, [], id="no-more-in-this-hour"),
        pytest.param(1, 9, NOW - 1, [], id="the-limit-was-lowered"),
    ],
)
def test_messages(count: int, singles: int, last_digest: float | None, expected: list[int]) -> None:
    groups, is_digest = messages_due(alerts(count), (singles, last_digest), CONFIG, NOW)
    assert [len(group) for group in groups] == expected
    assert is_digest == (sum(expected) > len(expected))


def test_nothing_waits_at_the_end() -> None:
    waiting = alerts(1)
    due = messages_due(waiting, (5, NOW - 1), CONFIG, NOW, is_last=True)
    assert due == ([waiting], True)
