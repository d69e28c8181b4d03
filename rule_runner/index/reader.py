"""IndexReader: reads the index of `watch`, also while a controller writes it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from rule_core.named_texts import NamedTexts
from rule_core.severity import Severity
from rule_runner.index.records import IndexChanges, RuleRecord, TrialFilter, TrialRecord
from rule_runner.index.sqlite_file import SqliteFile
from rule_runner.index.states import WatchState
from rule_runner.loading.profile_paths import profile_paths, trial_paths

LONGEST_PAUSE_S: Final = 60.0  # before an evaluation is started
_SQL: Final = NamedTexts(Path(__file__).with_suffix(".sql"))
_TRIALS: Final = "SELECT * FROM trials"
_COUNT: Final = "SELECT count(*) FROM trials"
_RULES: Final = "SELECT * FROM rule_jobs"
_WITH_RULE: Final = "SELECT trial FROM rule_jobs WHERE"
_WITH_OUTPUT: Final = "WHERE state = 'judged' AND NOT removed"
_CONDITIONS: Final = {
    "state": "state = ?",
    "outcome": "verdict = ?",
    "text": "instr(path, ?) > 0",
}
_RULE_CONDITIONS: Final = {
    "rule": "name = ?",
    "rule_outcome": "verdict = ?",
    "severity": "coalesce(severity, 'error') = ? AND verdict = 'IssuesFound'",
}
# By the name of an order; "-" before it reverses it.
_ORDERS: Final = {
    "path": "path",
    "changed": "changed_at",
    "started": "started_at",
    "ended": "ended_at",
    "outcome": "verdict",
}
ORDERS: Final = tuple(sign + name for name in _ORDERS for sign in ("", "-"))
_BATCH: Final = 500  # values in a statement


class IndexReader(SqliteFile):
    """The index of `watch`, an SQLite database.

    Parameters
    ----------
    path
        The database, which must exist unless `mode` makes it.

    Raises
    ------
    OutputError
        If it cannot be read.
    """

    contents = ("Database", "is")
    remedy = "Make it again from the results with --rebuild."
    schema_version = 4

    def trial(self, number: int) -> TrialRecord | None:
        """Return a trial by its id."""
        return next(iter(self._trials("WHERE id = ?", number)), None)

    def trial_at(self, path: str) -> TrialRecord | None:
        """Return a trial by its path."""
        return next(iter(self._trials("WHERE path = ?", path)), None)

    def profile_of(self, trial: TrialRecord) -> TrialRecord | None:
        """Return the trial with the profile of a training: itself, or one near it."""
        if trial.profiler:
            return trial
        near = filter(None, map(self.trial_at, profile_paths(trial.path)))
        return next((profile for profile in near if profile.profiler), None)

    def training_of(self, profile: TrialRecord) -> TrialRecord | None:
        """Return the trial with the tensors of a training, by its profile; None if it has none."""
        if profile.tensors:
            return None
        near = filter(None, map(self.trial_at, trial_paths(profile.path)))
        return next((trial for trial in near if trial.tensors), None)

    def trial_with(self, output: str) -> TrialRecord | None:
        """Return a trial by its output folder."""
        return next(iter(self._trials("WHERE output = ?", output)), None)

    def trials(
        self,
        trial_filter: TrialFilter | None = None,
        *,
        order: str = "path",
        limit: int = -1,
        offset: int = 0,
    ) -> list[TrialRecord]:
        """Return the trials that a filter fits; a negative limit is none.

        Parameters
        ----------
        order
            One of `ORDERS`; trials without such a value come last.
        """
        where, values = _where(trial_filter or TrialFilter())
        column = _ORDERS[order.removeprefix("-")]
        direction = "DESC" if order.startswith("-") else "ASC"
        by = f"{column} {direction} NULLS LAST, path"
        return self._trials(f"{where} ORDER BY {by} LIMIT ? OFFSET ?", *values, limit, offset)

    def total(self, trial_filter: TrialFilter | None = None) -> int:
        """Return how many trials a filter fits."""
        where, values = _where(trial_filter or TrialFilter())
        return int(self.execute(f"{_COUNT} {where}", *values)[0][0])

    def changes_since(self, revision: int, limit: int) -> IndexChanges:
        """Return what has changed after a revision; of the trials, at most `limit`.

        Call it in a `snapshot`, so that the trials are those of the new revision.
        """
        latest, removals = self.execute("SELECT revision, removals FROM changes")[0]
        text = "WHERE revision > ? ORDER BY revision LIMIT ?"
        trials = self._trials(text, revision, limit)
        return IndexChanges(latest, removals, tuple(trials))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let the statements of the block see one state of the index."""
        with self.errors():
            self.connection.execute("BEGIN")
        try:
            yield
        finally:
            with self.errors():
                self.connection.execute("ROLLBACK")

    def oldest(self, state: WatchState, limit: int = -1) -> list[TrialRecord]:
        """Return the trials that have been in a state for the longest time."""
        return self._trials("WHERE state = ? ORDER BY changed_at, id LIMIT ?", state, limit)

    def startable(self, now: float, limit: int, *, is_new: bool) -> list[TrialRecord]:
        """Return trials that may be started, those that wait longest first.

        A pause far in the future is one of before the clock was set back.

        Parameters
        ----------
        is_new
            Whether they are trials that have never been started, or the others.
        """
        return self._trials(
            _SQL["startable"],
            *(WatchState.QUEUED, now, now + LONGEST_PAUSE_S, is_new, limit),
        )

    def unfinished(self) -> list[int]:
        """Return the ids of judged trials whose verdicts more data may change."""
        text = "SELECT id FROM trials WHERE state = ? AND NOT final AND NOT removed ORDER BY id"
        return [number for (number,) in self.execute(text, WatchState.JUDGED)]

    def paths(self) -> set[str]:
        """Return the paths of the trials that were found below a root."""
        return {path for (path,) in self.execute("SELECT path FROM trials WHERE root != ''")}

    def expired(self, before: float) -> list[TrialRecord]:
        """Return the judged trials with an output whose evaluation ended before a time."""
        return self._trials(f"{_WITH_OUTPUT} AND ended_at < ? ORDER BY ended_at", before)

    def beyond_newest(self, count: int) -> list[TrialRecord]:
        """Return the judged trials with an output except those that ended last."""
        return self._trials(f"{_WITH_OUTPUT} ORDER BY ended_at DESC LIMIT -1 OFFSET ?", count)

    def has_issues(self, severity: Severity) -> bool:
        """Return whether a rule in mode enforce found an issue that is at least so serious.

        Muted findings do not count.
        """
        words = self.execute(_SQL["severities"])
        return any(Severity(word).rank >= severity.rank for (word,) in words)

    def acknowledged(self) -> list[int]:
        """Return the ids of trials with an issue that somebody acknowledged or muted.

        Also of those with an issue that an earlier version recorded.
        """
        return [number for (number,) in self.execute(_SQL["acknowledged"])]

    def undelivered(self) -> dict[int, int]:
        """Return the number of undelivered events by trial, of trials that have any."""
        text = "SELECT id, undelivered FROM trials WHERE undelivered > 0 AND NOT removed"
        return dict(self.execute(text))

    def rules_of(self, number: int) -> list[RuleRecord]:
        """Return the rule jobs of a trial, ordered by name."""
        return self.rules_of_trials([number])[number]

    def rules_of_trials(self, numbers: Iterable[int]) -> dict[int, list[RuleRecord]]:
        """Return the rule jobs of several trials by trial, ordered by name."""
        rules: dict[int, list[RuleRecord]] = {number: [] for number in numbers}
        ids = [*rules]
        for begin in range(0, len(ids), _BATCH):
            batch = ids[begin : begin + _BATCH]
            marks = ", ".join("?" * len(batch))
            text = f"{_RULES} WHERE trial IN ({marks}) ORDER BY trial, name"
            for row in self.rows(text, *batch):
                rules[row.pop("trial")].append(msgspec.convert(row, RuleRecord, strict=False))
        return rules

    def issues(self) -> dict[int, dict[str, int | None]]:
        """Return the step of each issue that has not recovered by rule job, by trial."""
        text = "SELECT trial, name, step FROM rule_jobs WHERE verdict = 'IssuesFound'"
        issues: dict[int, dict[str, int | None]] = defaultdict(dict)
        for trial, name, step in self.execute(text):
            issues[trial][name] = step
        return issues

    def rule_work(self) -> dict[str, tuple[int, int, float]]:
        """Return the steps judged, those of running trials that wait, and the seconds, by rule."""
        rows = self.execute(_SQL["rule_work"])
        return {rule: (steps, waiting, spent) for rule, steps, waiting, spent in rows}

    def restarts(self) -> int:
        """Return how often evaluations of the trials were restarted."""
        return int(self.execute("SELECT coalesce(sum(restarts), 0) FROM trials")[0][0])

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of trials by state and verdict; the verdict is "" before the first."""
        rows = self.execute("SELECT state, verdict, count(*) FROM trials GROUP BY state, verdict")
        return {(state, verdict): count for state, verdict, count in rows}

    def incident_counts(self) -> dict[str, int]:
        """Return the number of incidents by the severity of their root causes."""
        return dict(self.execute(_SQL["incidents"]))

    def rule_counts(self) -> dict[str, dict[str, int]]:
        """Return the number of rule jobs by rule, and by verdict."""
        text = "SELECT rule, verdict, count(*) FROM rule_jobs GROUP BY rule, verdict ORDER BY 1, 2"
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for rule, verdict, count in self.execute(text):
            counts[rule][verdict] = count
        return counts

    def _trials(self, condition: str, *values: object) -> list[TrialRecord]:
        rows = self.rows(f"{_TRIALS} {condition}", *values)
        return [msgspec.convert(row, TrialRecord, strict=False) for row in rows]

    def rows(self, text: str, *values: object) -> list[dict[str, Any]]:
        """Return the rows of a statement by the names of its columns."""
        with self.errors():
            cursor = self.connection.execute(text, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]


def _where(trial_filter: TrialFilter) -> tuple[str, list[str]]:
    """Return the condition of a filter, and its values."""
    fields = {
        name: value
        for name in (*_CONDITIONS, *_RULE_CONDITIONS)
        if (value := getattr(trial_filter, name)) is not None
    }
    conditions = [sql for name, sql in _CONDITIONS.items() if name in fields]
    if of_rule := [sql for name, sql in _RULE_CONDITIONS.items() if name in fields]:
        conditions.append(f"id IN ({_WITH_RULE} {' AND '.join(of_rule)})")
    return f"WHERE {' AND '.join(conditions)}" if conditions else "", [*fields.values()]
