"""Alerting: sends the messages about a fleet, in a separate thread."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rule_core.clock import Clock, SystemClock, pause_after
from rule_core.failures import OnError, attempt
from rule_core.severity import Severity
from rule_runner.config.output_names import digest
from rule_runner.durations import seconds_of
from rule_runner.errors import OutputError
from rule_runner.escape import printable
from rule_runner.index.outputs import read_results
from rule_runner.logs import get_logger
from rule_runner.notify.messenger import Messenger, NotSentError, masked
from rule_runner.report.text import evidence, reason
from rule_runner.results.durable_files import Closing
from rule_runner.watch.alerts.alert import Alert, message_on
from rule_runner.watch.alerts.entries import Wait
from rule_runner.watch.alerts.open_alerts import OpenAlerts
from rule_runner.watch.alerts.store import (
    LONGEST_PAUSE_S,
    AlertStore,
    MessageKind,
    UnsentMessage,
)
from rule_runner.watch.config import KIND, AlertsConfig
from rule_runner.watch.pace import repeat

_log: Final = get_logger(__name__)

FEW: Final = 3  # alerts at once that become a message each
LOOK_S: Final = 2.0  # between two looks at the index
RETRY_S: Final = 30.0  # the first pause before another attempt; each further one is twice as long
GIVE_UP_S: Final = 86400.0  # after which a message is not sent any more
STOP_S: Final = 10.0  # for a message that is under way when the process stops
_DIGITS: Final = 8  # of a service's name
_LONGEST_DETAILS: Final = 500  # characters


class Alerting(Closing):
    """Turns open issues into messages, and delivers them at least once each.

    Parameters
    ----------
    config
        How many messages, and about what.
    index
        The index of `watch`. The state of alerts is beside it.
    services
        The services by their names.
    public_url
        The address of the pages, for links.

    Raises
    ------
    OutputError
        If the state of alerts cannot be used.
    """

    def __init__(
        self,
        config: AlertsConfig,
        index: Path,
        services: Mapping[str, Messenger],
        public_url: str | None,
        clock: Clock,
    ) -> None:
        self._config = config
        self._services = services
        self._public_url = public_url
        self._clock = clock
        self._open = OpenAlerts(index, Severity(config.severity))
        self._store = AlertStore(state_path(index))
        self._stopping = threading.Event()
        self._trouble = ""

    def run(self) -> None:
        """Look until `stop`."""
        repeat(self.look, self._fail, self._stopping, LOOK_S)

    def stop(self) -> None:
        """End `run` after the message that is under way."""
        self._stopping.set()

    def look(self, *, is_last: bool = False) -> None:
        """Send the due messages; trouble is logged, and tried again the next time.

        Parameters
        ----------
        is_last
            Whether nobody looks again soon: then no alert waits for a digest.
        """
        # Messages are delivered also if the index cannot be read.
        troubles = [_trouble_of(lambda: self._gather(is_last=is_last)), _trouble_of(self._deliver)]
        trouble = next(filter(None, troubles), "")
        if trouble and trouble != self._trouble:
            _log.error("alerts_unavailable", reason=trouble)
        self._trouble = trouble

    def _fail(self, err: Exception) -> None:
        """Log a defect, once as long as it stays the same."""
        if repr(err) != self._trouble:
            _log.error("alerts_failed", exc_info=err)
        self._trouble = repr(err)

    def finish(self) -> None:
        """Send all pending messages once, and report how many remain for the next start."""
        self._stopping.clear()
        self.look(is_last=True)
        count = 0
        with suppress(OutputError):  # which `look` has logged
            count = self._store.count_undelivered()
        if count:
            _log.warning("alerts_undelivered", count=count)

    def close(self) -> None:
        """Close the state."""
        self._store.close()

    def _gather(self, *, is_last: bool) -> None:
        """Record the open alerts and the due messages before sending any."""
        now = self._clock.time()
        state = self._open.changed()
        if state is not None:
            with OnError(self._open.forget):
                self._store.keep_open(*state, now)
        waiting, history = self._store.waiting(), self._store.history(now)
        groups, is_digest = messages_due(waiting, history, self._config, now, is_last=is_last)
        kind = MessageKind.DIGEST if is_digest else MessageKind.SINGLE
        for group in groups:
            self._record(group, kind, [*self._services], now)
        updating = [name for name, service in self._services.items() if service.updates]
        for alert in self._store.waiting(Wait.UPDATE):
            services = updating if self._store.shows(alert.incident) else []
            self._record([alert], MessageKind.UPDATE, services, now)

    def _record(
        self, alerts: Sequence[Alert], kind: MessageKind, services: Sequence[str], now: float
    ) -> None:
        message = message_on(alerts, self._public_url, details_of)
        self._store.add_message(message, alerts, services, now, kind)

    def _deliver(self) -> None:
        for delivery in self._store.due(self._clock.time()):
            if self._stopping.is_set():
                return
            messenger = self._services.get(delivery.service)
            if messenger is None:  # it was removed from the configuration
                self._store.delivered(delivery)
                continue
            problem = _send(messenger, delivery)
            if problem:
                self._postpone(delivery, problem)
            else:
                self._store.delivered(delivery)
                _log.info("alert_sent", service=delivery.service, title=delivery.message.title)

    def _postpone(self, delivery: UnsentMessage, problem: str) -> None:
        now = self._clock.time()
        facts = {"service": delivery.service, "title": delivery.message.title, "reason": problem}
        if now - delivery.made_at > GIVE_UP_S:
            self._store.delivered(delivery)
            _log.error("alert_given_up", **facts)
            return
        pause = pause_after(delivery.attempts + 1, RETRY_S, LONGEST_PAUSE_S)
        self._store.postpone(delivery, now + pause)
        _log.warning("alert_not_sent", **facts)


def _trouble_of(step: Callable[[], None]) -> str:
    """Do a step, and return why it could not be done; "" if it was."""
    try:
        step()
    except OutputError as err:
        return str(err)
    return ""


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
    is_due = is_last or last is None or not last <= now < last + seconds_of(config.digest_every)
    return ([waiting], True) if waiting and is_due else ((), False)


def details_of(alert: Alert) -> str:
    """Return the first open finding of an alert, or why its rule failed, from its results."""
    is_read = alert.rule and alert.recovered_at is None
    try:
        results = read_results(alert.output) if is_read else []
    except OutputError:
        results = []
    for rule in results:
        if rule.configuration_name == alert.rule and rule.outcome == alert.outcome:
            finding = rule.main_finding
            details = evidence(finding, rule.unit) if finding else reason(rule)
            return details[:_LONGEST_DETAILS]
    return alert.details


def _send(messenger: Messenger, delivery: UnsentMessage) -> str:
    """Send a message, and return why the service did not take it; "" if it did."""

    def send() -> str:
        try:
            messenger.send(delivery.message)
        except NotSentError as err:
            return printable(err)
        return ""

    return attempt(send, lambda err: f"Apprise failed: {printable(err)}")


def state_path(index: Path) -> Path:
    """Return the database with the state of alerts."""
    return index.with_name(f"{index.name}-alerts")


def services_of(config: AlertsConfig) -> dict[str, Messenger]:
    """Return the services of a configuration by names without secrets.

    Raises
    ------
    UsageError
        If Apprise is not installed or does not know an address, or a variable is not set.
    """
    addresses = [sink.removeprefix(KIND) for sink in config.sinks]
    return {
        f"{masked(address)} {digest(address, _DIGITS)}": Messenger(address) for address in addresses
    }


@contextmanager
def alerting(
    config: AlertsConfig | None,
    index: Path,
    services: Mapping[str, Messenger],
    public_url: str | None,
    *,
    once: bool = False,
) -> Iterator[None]:
    """Send alerts while the block runs; with `once`, also sends the remainder before it ends.

    Raises
    ------
    OutputError
        If the state of alerts cannot be used.
    """
    if config is None:
        yield
        return
    alerts = Alerting(config, index, services, public_url, SystemClock())
    thread = threading.Thread(target=alerts.run, name="alerts", daemon=True)
    thread.start()
    try:
        yield
    finally:
        alerts.stop()
        thread.join(STOP_S)
    if thread.is_alive():
        _log.warning("alert_interrupted")  # it is sent again at the next start
        return
    with alerts:
        if once:
            alerts.finish()
