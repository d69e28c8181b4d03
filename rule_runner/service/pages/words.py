"""Words, signs and classes of verdicts, as in reports."""

from collections.abc import Hashable
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from rule_core.severity import Severity
from rule_core.sources.address import address_of
from rule_runner.escape import printable
from rule_runner.index.reader import LONGEST_PAUSE_S
from rule_runner.index.records import RECOVERED, TrialRecord
from rule_runner.index.states import WatchState
from rule_runner.loading.profile_paths import FOLDERS
from rule_runner.report.html.page import WORDS
from rule_runner.results.evaluations import ORDER
from rule_runner.results.status import Outcome

NAME_LENGTH: Final = 200  # displayed characters
_CACHED: Final = 4096  # a table repeats the same few texts
WARNING: Final = "Warning"
VERDICTS: Final = (*ORDER[:1], RECOVERED, *ORDER[1:])  # as people see outcomes
STATES: Final = {
    WatchState.DISCOVERED: "Discovered",
    WatchState.QUEUED: "Queued",
    WatchState.RUNNING: "Running",
    WatchState.JUDGED: "Judged",
    WatchState.LOST: "Lost",
    WatchState.IGNORED: "Ignored",
}


class Verdict(NamedTuple):
    """How an outcome is shown: a class of the style sheet, a word, and a sign."""

    name: str
    word: str
    sign: str


@lru_cache(_CACHED)
def verdict(outcome: str, severity: Severity | None = None) -> Verdict:
    """Return how an outcome is shown; an issue that is only a warning has its own sign.

    >>> verdict("IssuesFound", Severity.WARNING)
    Verdict(name='Warning', word='Warning', sign='▲')
    """
    if outcome == RECOVERED:
        return Verdict(RECOVERED, RECOVERED, "○")
    if outcome not in Outcome.__members__.values():
        return Verdict("Stopped", printable(outcome) or "No verdict yet", "·")
    if outcome == Outcome.ISSUES_FOUND and severity is Severity.WARNING:
        return Verdict(WARNING, WARNING, "▲")
    return Verdict(outcome, *WORDS[Outcome(outcome)])


def verdict_so_far(outcome: str, severity: Severity | None) -> Verdict | None:
    """Return how the outcome of a trial is shown; while it runs, its most serious finding.

    None if there is neither.
    """
    if outcome:
        return verdict(outcome, severity)
    return None if severity is None else verdict(Outcome.ISSUES_FOUND, severity)


@lru_cache(_CACHED)
def short(text: Hashable) -> str:
    """Return text of a trial or user for a page: printable, and not too long."""
    shown = printable(text)
    return shown if len(shown) <= NAME_LENGTH else f"{shown[: NAME_LENGTH - 1]}…"


def waits_for(trial: TrialRecord, now: float, hindrance: str = "") -> str:
    """Return what a queued trial waits for, in a sentence; "" if it is not queued.

    Parameters
    ----------
    hindrance
        Why the controller can start nothing, in a sentence; "" if it can.
    """
    if trial.state is not WatchState.QUEUED:
        return ""
    if hindrance:
        return hindrance
    if now < trial.not_before <= now + LONGEST_PAUSE_S:
        if trial.restarts:
            return "Its evaluation ended without a verdict and starts again soon."
        return "It waits for new data."
    if trial.started_at is None:
        return "It waits for a free slot."
    return "It waits for its next turn."


class TrialName(NamedTuple):
    """The name of a trial, and the folder that it is in."""

    name: str
    folder: str


def split_path(path: str) -> TrialName:
    """Return the parts of a trial's path for a page.

    >>> split_path("s3://bucket/runs/mnist/debug-output")
    TrialName(name='mnist', folder='s3://bucket/runs')
    >>> split_path("/runs/mnist/profile")
    TrialName(name='mnist profile', folder='/runs')
    """
    parent, _, last = path.rpartition("/")
    folder, _, training = parent.rpartition("/")
    if last in FOLDERS and training and folder.removeprefix("s3:/"):
        return TrialName(short(f"{training} profile"), short(folder))
    name = address_of(path).name
    before, found, _ = path.rpartition(f"/{name}")
    folder = before if found else str(PurePosixPath(path).parent)
    return TrialName(short(name), short(folder))
