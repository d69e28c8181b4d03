"""Schedule: which waiting alerts become messages now."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rule_runner.watch.alerts.alert import Alert
from rule_runner.watch.alerts.config import AlertsConfig

FEW: Final = 3  # alerts at once that become a message each
HOUR_S: Final = 3600.0


class History(NamedTuple):
    """What was sent before.

    Attributes
    ----------
    singles
        How many messages on one alert there were within an hour.
    last_digest
        When the last digest was made, in seconds since the epoch; None: never.
    """

    singles: int
    last_digest: float | None


class Due(NamedTuple):
    """Which messages are due.

    Attributes
    ----------
    groups
        The alerts of each message.
    is_digest
        Whether the only message is a digest.
    """

    groups: Sequence[Sequence[Alert]] = ()
    is_digest: bool = False


def messages_due(
    waiting: Sequence[Alert],
    history: History,
    config: AlertsConfig,
    now: float,
    *,
    is_last: bool = False,
) -> Due:
    """Return the alerts of each message that is due; the others wait.

    A few alerts become a message each. More at once, or more than the hourly limit, become one
    digest, which waits until it is due.

    Parameters
    ----------
    waiting
        The alerts that were not sent, the oldest first.
    now
        Seconds since the epoch.
    is_last
        Whether nobody asks again soon: then nothing waits.
    """
    if not waiting:
        return Due()
    if len(waiting) <= min(FEW, config.most_per_hour - history.singles):
        return Due([[alert] for alert in waiting])
    last = history.last_digest
    is_due = last is None or not last <= now < last + config.digest_s
    return Due([waiting], is_digest=True) if is_due or is_last else Due()
