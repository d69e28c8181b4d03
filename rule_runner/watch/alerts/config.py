"""AlertsConfig: where the alerts of a fleet go, and how many."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from rule_core.severity import Severity
from rule_runner.durations import Duration, seconds_of

KIND: Final = "apprise:"


class AlertsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where alerts go, and how many.

    Attributes
    ----------
    sinks
        Services for messages: ``apprise:`` and an address of Apprise, or ``apprise:$NAME``, the
        variable that has it.
    severity
        Only issues that are at least so serious.
    most_per_hour
        How many messages on one rule each are sent within an hour, at most. Further alerts wait
        for a digest.
    digest_every
        The shortest time between two digests.
    """

    sinks: Annotated[tuple[Annotated[str, Meta(min_length=1)], ...], Meta(min_length=1)]
    severity: Literal["error", "warning"] = "warning"
    most_per_hour: Annotated[int, Meta(ge=0, le=1000)] = 10
    digest_every: Duration = "15m"

    @property
    def least(self) -> Severity:
        """The severity from which an issue is alerted about."""
        return Severity(self.severity)

    @property
    def digest_s(self) -> float:
        """Seconds between two digests."""
        return float(seconds_of(self.digest_every))

    @property
    def addresses(self) -> list[str]:
        """The addresses of the services, each once."""
        return [*dict.fromkeys(sink.removeprefix(KIND) for sink in self.sinks)]

    def check_sinks(self) -> None:
        """Check the forms of the sinks.

        Raises
        ------
        ValueError
            If one is wrong.
        """
        for sink in self.sinks:
            if not sink.removeprefix(KIND) or not sink.startswith(KIND):
                kind = sink.partition(":")[0]
                msg = f"alerts.sinks must begin with '{KIND}', got {kind!r:.100}"
                raise ValueError(msg)
