"""Turns: decides which evaluations make room for trials that wait."""

from collections import deque
from collections.abc import Collection, Iterator
from typing import Final

from rule_runner.index.records import TrialRecord
from rule_runner.watch.evaluations import Evaluations
from rule_runner.watch.growth import last_change, mark_of
from rule_runner.watch.options import WatchContext
from rule_runner.watch.pace import PROMPT_S, Pace

ABSENT_S: Final = 10.0  # until the next look for a queued trial without new data
LOOK_S: Final = 1.0  # between looks at the trials that wait while no slot is free
TURN_S: Final = 30.0  # the shortest turn while only trials wait that have had one
# The ratio of a turn to the time of its rules: a paused evaluation starts from the first step.
TURN_SHARE: Final = 10.0
FIRST_SHARE: Final = 3.0  # the same while a trial waits for its first turn
CONTINUED_SHARE: Final = 8  # of so many starts, one continues an evaluation while new trials wait


class Turns:
    """The turns of evaluations that follow growing trials.

    Times are those of the monotonic clock.

    Parameters
    ----------
    evaluations
        The running evaluations.
    """

    def __init__(self, context: WatchContext, evaluations: Evaluations) -> None:
        config, self._index, self._clock, options = context
        self._quiet_s = config.quiet_s
        self._once = options.once  # then evaluations end by themselves
        self._evaluations = evaluations
        self._began: dict[str, float] = {}
        self._pausing: set[str] = set()
        self._starts = 0
        self.pace = Pace(self._clock, LOOK_S, PROMPT_S)

    def waiting(self, free: int, limit: int) -> deque[TrialRecord]:
        """Return the trials to start, in this order.

        If there are more than `free` slots, those that are due, and others only for slots that
        would stay free. Of new and of continued ones there are at most `limit`, those that wait
        longest.
        """
        trials = deque(self._in_turns(limit))
        if len(trials) <= free:
            return trials
        due, idle = deque[TrialRecord](), list[TrialRecord]()
        for trial in trials:
            (due if self.is_due(trial) else idle).append(trial)
        due.extend(idle[: max(0, free - len(due))])
        return due

    def _in_turns(self, limit: int) -> Iterator[TrialRecord]:
        """Yield trials that may be started: new ones, and among them continued ones."""
        now = self._clock.time()
        new, continued = (
            deque(self._index.startable(now, limit, is_new=is_new)) for is_new in (True, False)
        )
        place = self._starts
        while new or continued:
            place += 1
            is_new = new and (place % CONTINUED_SHARE or not continued)
            yield (new if is_new else continued).popleft()

    def is_quiet(self, trial: TrialRecord, mark: str) -> bool:
        """Return whether a trial with this mark has had no new data for long."""
        changed = last_change(trial.path, mark)
        return changed is not None and self._clock.time() - changed > self._quiet_s

    def is_due(self, trial: TrialRecord) -> bool:
        """Return whether an evaluation of a queued trial has something to do; if not, postpone it.

        It has if the trial is new, has new data, or is quiet, or if the last evaluation died.
        """
        if self._once or trial.started_at is None or trial.restarts:
            return True
        mark = mark_of(trial.path, trial.mark)
        if mark != trial.mark or self.is_quiet(trial, mark):
            return True
        self.postpone(trial)
        return False

    def postpone(self, trial: TrialRecord) -> None:
        """Have a queued trial looked at again later."""
        self._index.update(trial.id, not_before=self._clock.time() + ABSENT_S)

    def begin(self, output: str) -> None:
        """Record that the evaluation with this output has been started, maybe once more."""
        self._starts += 1
        self._pausing.discard(output)
        self._began[output] = self._clock.monotonic()

    def make_room(self, waiting: Collection[TrialRecord]) -> None:
        """Pause as many evaluations as trials wait, those that have run longest first.

        Their turns must be over. They are shorter while trials wait for their first one.
        """
        if self._once:
            return
        now = self._clock.monotonic()
        outputs = self._evaluations.outputs
        self._began = {output: self._began.get(output, now) for output in outputs}
        self._pausing.intersection_update(outputs)
        new = sum(trial.started_at is None for trial in waiting)
        for output in sorted(self._began, key=self._began.__getitem__):
            if len(self._pausing) >= len(waiting):
                return
            if now - self._began[output] >= self._turn_s(output, len(self._pausing) < new):
                self._evaluations.pause_one(output)
                self._pausing.add(output)

    def _turn_s(self, output: str, is_first: bool) -> float:
        """Return the length of a turn in seconds; see `FIRST_SHARE` for `is_first`."""
        trial = self._index.trial_with(output)
        rules = [] if trial is None else self._index.rules_of(trial.id)
        rule_time = sum(rule.rule_time for rule in rules)
        return FIRST_SHARE * rule_time if is_first else max(TURN_S, TURN_SHARE * rule_time)
