"""Schedule: which waiting alerts become messages now."""

from collections.abc import Sequence
from typing import Final

from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.config import AlertsConfig

FEW: Final = 3  # alerts at once that become a message each
HOUR_S: Final = 3600.0


def messages_due(
    waiting: Sequence[Alert],
    history: tuple[int, float | None],
    config: AlertsConfig,
    now: float,
    *,
    is_last: bool = False,
) -> tuple[Sequence[Sequence[Alert]], bool]:
    """Return the alerts of each message that is due, and whether it is a digest; the others wait.

    A few alerts become a message each. More at once, or more than the hourly limit, become one
    digest, which waits until it is due.

    Parameters
    ----------
    waiting
        The alerts that were not sent, the oldest first.
    history
        How many messages on one alert there were within an hour, and when the last digest was made,
        in seconds since the epoch; None: never.
    now
        Seconds since the epoch.
    is_last
        Whether nobody asks again soon: then nothing waits.
    """
    singles, last = history
    if len(waiting) <= min(FEW, config.most_per_hour - singles):
        return [[alert] for alert in waiting], False
    is_due = is_last or last is None or not last <= now < last + config.digest_s
    return ([waiting], True) if waiting and is_due else ((), False)
