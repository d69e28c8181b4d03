"""States of a watched trial: their transition table, and the outcome of its rules."""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

from rule_runner.results.status import Outcome

RESTARTS: Final = 3  # of an evaluation that died


class WatchState(enum.StrEnum):
    """Where a watched trial stands."""

    DISCOVERED = "discovered"
    QUEUED = "queued"
    RUNNING = "running"
    JUDGED = "judged"
    LOST = "lost"
    IGNORED = "ignored"


class TrialInput(enum.Enum):
    """The inputs of the transition table."""

    RULES_CHOSEN = enum.auto()  # the configuration has rules for the trial
    NO_RULES = enum.auto()  # the configuration has no rules for it
    STARTED = enum.auto()  # its evaluation starts, or one of an earlier controller is adopted
    ENDED = enum.auto()  # its evaluation has ended for good
    STOPPED = enum.auto()  # its evaluation was ended by no fault of its own
    DIED = enum.auto()  # its evaluation is gone without a verdict
    RESTARTED = enum.auto()  # the evaluation that died is to start again
    GIVEN_UP = enum.auto()  # it died too often
    GREW = enum.auto()  # new data arrived after verdicts that are not final


# The state that follows on an input; other inputs are impossible.
TRANSITIONS: Final[Mapping[tuple[WatchState, TrialInput], WatchState]] = {
    (WatchState.DISCOVERED, TrialInput.RULES_CHOSEN): WatchState.QUEUED,
    (WatchState.DISCOVERED, TrialInput.NO_RULES): WatchState.IGNORED,
    (WatchState.QUEUED, TrialInput.STARTED): WatchState.RUNNING,
    (WatchState.QUEUED, TrialInput.NO_RULES): WatchState.IGNORED,
    (WatchState.RUNNING, TrialInput.ENDED): WatchState.JUDGED,
    (WatchState.RUNNING, TrialInput.STOPPED): WatchState.QUEUED,
    (WatchState.RUNNING, TrialInput.DIED): WatchState.LOST,
    (WatchState.LOST, TrialInput.RESTARTED): WatchState.QUEUED,
    (WatchState.LOST, TrialInput.GIVEN_UP): WatchState.JUDGED,
    (WatchState.JUDGED, TrialInput.GREW): WatchState.QUEUED,
    (WatchState.IGNORED, TrialInput.RULES_CHOSEN): WatchState.QUEUED,
}


def advance_trial(state: WatchState, trial_input: TrialInput) -> WatchState:
    """Return the state that follows `state` on an input.

    >>> str(advance_trial(WatchState.RUNNING, TrialInput.DIED))
    'lost'

    Raises
    ------
    ValueError
        If the input is impossible in this state, which is a defect of the caller.
    """
    if (following := TRANSITIONS.get((state, trial_input))) is None:
        raise ValueError(f"A trial that is {state} cannot take input {trial_input.name}.")
    return following


def after_death(restarts: int) -> TrialInput:
    """Return what happens to a lost trial whose evaluation was restarted so often already."""
    return TrialInput.RESTARTED if restarts < RESTARTS else TrialInput.GIVEN_UP


# The first outcome that a rule has is that of the trial.
_ORDER: Final = (Outcome.ISSUES_FOUND, Outcome.ERROR, Outcome.STOPPED)
_REST: Final = (Outcome.NOT_EVALUATED, Outcome.NO_ISSUES_FOUND)


def trial_outcome(outcomes: Iterable[str], *, lenient: bool) -> Outcome:
    """Return the outcome of a trial from those of its rules.

    Parameters
    ----------
    lenient
        Whether rules that judged nothing do not count as long as another rule judged something:
        rules that were chosen because they fit, not named.

    >>> str(trial_outcome(["NoIssuesFound", "NotEvaluated"], lenient=True))
    'NoIssuesFound'
    >>> str(trial_outcome(["NoIssuesFound", "NotEvaluated"], lenient=False))
    'NotEvaluated'
    """
    present = {*outcomes}
    order = (*_ORDER, *(_REST[::-1] if lenient else _REST))
    return next((outcome for outcome in order if outcome in present), Outcome.NOT_EVALUATED)
