"""AlertEntry: an alert, and what people know of it; decides what they are to be told."""

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from rule_core.severity import Severity
from rule_runner.results.json_text import json_digest
from rule_runner.watch.alerts.alert import RECOVERED, Alert

_ID_LENGTH: Final = 16
_PHASES: Final = ("", RECOVERED, str(Severity.WARNING), str(Severity.ERROR))
# By the path of a trial and the name of a rule job: since when its issue no longer holds, or None.
Recoveries: TypeAlias = Mapping[str, Mapping[str, int | None]]


class Wait(enum.IntEnum):
    """What an alert waits for.

    ``UPDATE``: receivers that can update what they show are to have its present content.
    """

    NOTHING = 0
    MESSAGE = 1
    UPDATE = 2


class AlertEntry(NamedTuple):
    """An alert as it is recorded.

    Attributes
    ----------
    id
        Its number; None before it is recorded.
    known_phase
        The phase that people know; "" if they know nothing of it.
    found_at
        When its latest news was found, in seconds since the epoch.
    """

    id: int | None
    alert: Alert
    known_phase: str
    waits: Wait
    found_at: float


def advance(
    entries: Iterable[AlertEntry], alerts: Sequence[Alert], recoveries: Recoveries, now: float
) -> Iterator[AlertEntry]:
    """Yield the entries that follow from what is open now; those that nobody knows of end.

    Parameters
    ----------
    alerts
        What is open and not acknowledged.
    recoveries
        Of the trials with a rule job whose issue has recovered.
    """
    by_path: dict[str, list[AlertEntry]] = defaultdict(list)
    for entry in entries:
        by_path[entry.alert.path].append(entry)
    roots = {(entry.alert.path, entry.alert.rule) for each in by_path.values() for entry in each}
    # An entry belongs to the alert with its root cause first; then a new root takes it over.
    for alert in sorted(alerts, key=lambda alert: (alert.path, alert.rule) not in roots):
        own = [entry for entry in by_path[alert.path] if entry.alert.stands_for(alert)]
        by_path[alert.path] = [entry for entry in by_path[alert.path] if entry not in own]
        own.sort(key=lambda entry: entry.alert.rule != alert.rule)
        yield _opened(own, alert, now)
    for entry in chain.from_iterable(by_path.values()):
        if entry.known_phase:
            yield _closed(entry, recoveries.get(entry.alert.path, {}), now)


def _opened(own: Sequence[AlertEntry], alert: Alert, now: float) -> AlertEntry:
    """Return the entry of an open alert, into which its earlier entries merge."""
    if not own:
        incident = json_digest([alert.path, alert.rule], _ID_LENGTH)
        return AlertEntry(None, replace(alert, incident=incident), "", Wait.MESSAGE, now)
    first = own[0]
    known_phase = max((entry.known_phase for entry in own), key=_PHASES.index)
    known_since = max(entry.alert.since for entry in own)
    is_news = first.waits is Wait.MESSAGE or alert.since > known_since
    if known_phase == RECOVERED and not is_news:
        return first._replace(known_phase=known_phase, waits=Wait.NOTHING)  # it is judged again
    rules = frozenset.union(*(entry.alert.rules for entry in own))
    content = replace(
        alert,
        former=tuple(sorted(rules - {alert.rule, *alert.consequences})),
        since=max(alert.since, known_since),
        incident=first.alert.incident or json_digest([alert.path, first.alert.rule], _ID_LENGTH),
    )
    if known_phase == RECOVERED or _PHASES.index(alert.phase) > _PHASES.index(known_phase):
        return _waiting(first, content, now)._replace(known_phase=known_phase)
    names, before = (content.rule, *content.consequences), first.alert
    is_changed = names != (before.rule, *before.consequences)
    waits = Wait.UPDATE if is_changed or first.waits is Wait.UPDATE else Wait.NOTHING
    return first._replace(alert=content, known_phase=known_phase, waits=waits)


def _closed(entry: AlertEntry, recoveries: Mapping[str, int | None], now: float) -> AlertEntry:
    """Return an entry of which people know, and nothing is open and not acknowledged."""
    steps = [recoveries[rule] for rule in entry.alert.rules if rule in recoveries]
    passed = [step for step in steps if step is not None]
    if entry.known_phase == RECOVERED or not passed or len(passed) < len(steps):
        return entry._replace(waits=Wait.NOTHING)
    return _waiting(entry, replace(entry.alert, recovered_at=max(passed)), now)


def _waiting(entry: AlertEntry, content: Alert, now: float) -> AlertEntry:
    """Return an entry whose news wait for a message, with the time since when they do."""
    found_at = entry.found_at if entry.waits is Wait.MESSAGE else now
    return entry._replace(alert=content, waits=Wait.MESSAGE, found_at=found_at)
