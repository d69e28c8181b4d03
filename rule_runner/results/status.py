"""Status of a rule job: SageMaker's six values, their transition table, and their texts."""

import enum
import re
from collections.abc import Mapping
from typing import Final

from rule_core.model.segments import step_text

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
    """The six values of SageMaker's ``RuleEvaluationStatus``."""

    IN_PROGRESS = "InProgress"
    NO_ISSUES_FOUND = "NoIssuesFound"
    ISSUES_FOUND = "IssuesFound"
    ERROR = "Error"
    STOPPING = "Stopping"
    STOPPED = "Stopped"

    @property
    def final(self) -> bool:
        """Return whether this status never changes."""
        return not TRANSITIONS[self]


DETAILED: Final = {RuleStatus.ISSUES_FOUND, RuleStatus.ERROR, RuleStatus.STOPPED}


class Outcome(enum.StrEnum):
    """Outcome of a rule job: the six statuses, and NotEvaluated, which must not read as healthy."""

    IN_PROGRESS = "InProgress"
    NO_ISSUES_FOUND = "NoIssuesFound"
    ISSUES_FOUND = "IssuesFound"
    ERROR = "Error"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    NOT_EVALUATED = "NotEvaluated"


class FindingState(enum.StrEnum):
    """Whether the condition of a finding still holds."""

    OPEN = "open"
    RECOVERED = "recovered"


class StatusInput(enum.Enum):
    """The inputs of the transition table."""

    CONDITION_MET = enum.auto()  # a step was judged, the condition is met
    TRIAL_ENDED = enum.auto()  # every step of an ended trial has been judged or skipped
    DRAINED = enum.auto()  # every ready step has been judged, but the trial has not ended
    NOTHING_JUDGED = enum.auto()  # the evaluation is over and no step was judged
    RULE_FAILED = enum.auto()  # the rule, its input or rule-runner itself failed
    STOP_REQUESTED = enum.auto()  # stop file, time limit or signal


TRANSITIONS: Final[Mapping[RuleStatus, Mapping[StatusInput, RuleStatus]]] = {
    RuleStatus.IN_PROGRESS: {
        StatusInput.CONDITION_MET: RuleStatus.ISSUES_FOUND,
        StatusInput.TRIAL_ENDED: RuleStatus.NO_ISSUES_FOUND,
        StatusInput.DRAINED: RuleStatus.NO_ISSUES_FOUND,
        StatusInput.NOTHING_JUDGED: RuleStatus.ERROR,
        StatusInput.RULE_FAILED: RuleStatus.ERROR,
        StatusInput.STOP_REQUESTED: RuleStatus.STOPPING,
    },
    RuleStatus.STOPPING: {
        StatusInput.CONDITION_MET: RuleStatus.ISSUES_FOUND,  # at the step that was being judged
        StatusInput.TRIAL_ENDED: RuleStatus.NO_ISSUES_FOUND,  # the stop had no effect
        StatusInput.DRAINED: RuleStatus.STOPPED,
        StatusInput.NOTHING_JUDGED: RuleStatus.STOPPED,
        StatusInput.RULE_FAILED: RuleStatus.ERROR,
        StatusInput.STOP_REQUESTED: RuleStatus.STOPPING,
    },
    RuleStatus.NO_ISSUES_FOUND: {},  # final: no row
    RuleStatus.ISSUES_FOUND: {},
    RuleStatus.ERROR: {},
    RuleStatus.STOPPED: {},
}


def advance(status: RuleStatus, status_input: StatusInput) -> RuleStatus:
    """Return the status that follows `status` on an input; a final status stays the same."""
    row = TRANSITIONS[status]
    return row[status_input] if row else status


def condition_text(rule: str, step: int) -> str:
    """Return SageMaker's text for a met condition, with its newline."""
    return (
        f"RuleEvaluationConditionMet: Evaluation of the rule {rule} at step {step_text(step)} "
        "resulted in the condition being met\n"
    )


def wire_details(text: str) -> str:
    r"""Return `text` fit for ``StatusDetails``: printable, at most 1024 characters.

    The beginning is kept, and so is a newline at the end. Control characters other than tab and
    newline, characters that change the text direction, and lone surrogates become escapes such
    as ``\x1b``.
    """
    body, newline = _split_newline(_UNPRINTABLE.sub(_escape, text))
    return body[: DETAILS_LIMIT - len(newline)] + newline


def for_people(details: str) -> str:
    """Return `details` without the prefixes that only SageMaker needs.

    >>> for_people("ClientError: Unknown rule 'X'.")
    "Unknown rule 'X'."
    """
    return details.removeprefix(CLIENT_ERROR).removeprefix(NOT_ENOUGH).strip()


def message_bytes(details: str) -> bytes:
    """Return `details` for the message file: at most 1024 bytes of UTF-8, cut at a character."""
    body, newline = _split_newline(wire_details(details))
    kept = body.encode()[: MESSAGE_LIMIT - len(newline)].decode(errors="ignore")
    return (kept + newline).encode()


def _split_newline(text: str) -> tuple[str, str]:
    return (text[:-1], "\n") if text.endswith("\n") else (text, "")


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
