"""Status of a rule job: SageMaker's six words, what moves them (one table), and their texts."""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

DETAILS_LIMIT: Final = 1024  # characters: StatusDetails of the SageMaker API
MESSAGE_LIMIT: Final = 1024  # bytes of UTF-8: message file of a processing container
CLIENT_ERROR: Final = "ClientError: "
INTERNAL_ERROR: Final = "InternalServerError: We encountered an internal error. Please try again."
NO_DATA: Final = "ClientError: No debugging data was saved by the training job."
NOT_ENOUGH: Final = "InsufficientInformationForRuleInvocation: "

_UNPRINTABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


class RuleStatus(enum.StrEnum):
    """The six words of ``RuleEvaluationStatus`` on the wire."""

    IN_PROGRESS = "InProgress"
    NO_ISSUES_FOUND = "NoIssuesFound"
    ISSUES_FOUND = "IssuesFound"
    ERROR = "Error"
    STOPPING = "Stopping"
    STOPPED = "Stopped"

    @property
    def final(self) -> bool:
        """Return whether nothing moves this status any more."""
        return not TRANSITIONS[self]


class Outcome(enum.StrEnum):
    """What a rule job came to: the six words, and one for silence that must not read as health."""

    IN_PROGRESS = "InProgress"
    NO_ISSUES_FOUND = "NoIssuesFound"
    ISSUES_FOUND = "IssuesFound"
    ERROR = "Error"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    NOT_EVALUATED = "NotEvaluated"


class Happened(enum.Enum):
    """What a rule job can see."""

    STEP_CLEAR = enum.auto()  # a step was judged, the condition is not met
    STEP_SKIPPED = enum.auto()  # a step could not be judged
    CONDITION_MET = enum.auto()  # a step was judged, the condition is met
    TRIAL_ENDED = enum.auto()  # every step of an ended trial has been judged or skipped
    DRAINED = enum.auto()  # what was to be judged now is judged, though the trial has more
    NOTHING_JUDGED = enum.auto()  # the walk is over and no step was judged
    RULE_FAILED = enum.auto()  # the rule, or what it was given, is at fault; or we are
    STOP_REQUESTED = enum.auto()  # stop file, time limit or signal


TRANSITIONS: Final[Mapping[RuleStatus, Mapping[Happened, RuleStatus]]] = MappingProxyType(
    {
        RuleStatus.IN_PROGRESS: {
            Happened.STEP_CLEAR: RuleStatus.IN_PROGRESS,
            Happened.STEP_SKIPPED: RuleStatus.IN_PROGRESS,
            Happened.CONDITION_MET: RuleStatus.ISSUES_FOUND,
            Happened.TRIAL_ENDED: RuleStatus.NO_ISSUES_FOUND,
            Happened.DRAINED: RuleStatus.NO_ISSUES_FOUND,
            Happened.NOTHING_JUDGED: RuleStatus.ERROR,
            Happened.RULE_FAILED: RuleStatus.ERROR,
            Happened.STOP_REQUESTED: RuleStatus.STOPPING,
        },
        RuleStatus.STOPPING: {
            Happened.STEP_CLEAR: RuleStatus.STOPPING,
            Happened.STEP_SKIPPED: RuleStatus.STOPPING,
            Happened.CONDITION_MET: RuleStatus.ISSUES_FOUND,  # in the step that was in hand
            Happened.TRIAL_ENDED: RuleStatus.NO_ISSUES_FOUND,  # the stop cut nothing short
            Happened.DRAINED: RuleStatus.STOPPED,
            Happened.NOTHING_JUDGED: RuleStatus.STOPPED,
            Happened.RULE_FAILED: RuleStatus.ERROR,
            Happened.STOP_REQUESTED: RuleStatus.STOPPING,
        },
        RuleStatus.NO_ISSUES_FOUND: {},  # final: no row
        RuleStatus.ISSUES_FOUND: {},
        RuleStatus.ERROR: {},
        RuleStatus.STOPPED: {},
    }
)


def advance(status: RuleStatus, happened: Happened) -> RuleStatus:
    """Return the status that follows `status` when `happened` is seen; a final one stays."""
    row = TRANSITIONS[status]
    return row[happened] if row else status


@dataclass(frozen=True, slots=True)
class StatusChange:
    """One move of a rule job's status: all that an event needs.

    Attributes
    ----------
    old, new
        Never the same.
    at
        Aware, UTC, from the caller's clock.
    details
        ``StatusDetails`` of the wire, at most 1024 characters; None unless `new` is
        IssuesFound, Error or Stopped.
    """

    old: RuleStatus
    new: RuleStatus
    at: datetime
    details: str | None


def condition_text(rule: str, step: int) -> str:
    """Return the contract's text of a condition met, with its newline."""
    return (
        f"RuleEvaluationConditionMet: Evaluation of the rule {rule} at step {step} "
        "resulted in the condition being met\n"
    )


def wire_details(text: str) -> str:
    r"""Return `text` fit for ``StatusDetails``: printable, at most 1024 characters.

    The beginning is kept and so is a newline at the end. Control characters other than tab
    and newline, characters that turn the direction of writing, and lone surrogates become
    escapes such as ``\x1b``.
    """
    body, newline = _split_newline(_UNPRINTABLE.sub(_escape, text))
    return body[: DETAILS_LIMIT - len(newline)] + newline


def message_bytes(details: str) -> bytes:
    """Return `details` for the message file: at most 1024 bytes of UTF-8, cut at a character."""
    body, newline = _split_newline(wire_details(details))
    kept = body.encode()[: MESSAGE_LIMIT - len(newline)].decode(errors="ignore")
    return (kept + newline).encode()


def _split_newline(text: str) -> tuple[str, str]:
    return (text[:-1], "\n") if text.endswith("\n") else (text, "")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
