"""Action: an action on a met condition, with a deadline and an outcome."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from rule_core.clock import Clock, SystemClock
from rule_core.failures import attempt
from rule_core.logger import get_logger

DEADLINE_S: Final = 30.0


class ActionState(enum.StrEnum):
    """The state of an action."""

    INTENDED = "intended"  # about to be carried out
    DONE = "done"
    FAILED = "failed"  # tried, and not done
    REFUSED = "refused"  # not tried
    DRY_RUN = "dry_run"  # not tried, because of a dry run
    UNKNOWN = "unknown"  # tried, and possibly done


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """The outcome of an action: its state, and a sentence without endpoints and secrets."""

    state: ActionState
    detail: str

    @classmethod
    def of_error(cls, err: Exception) -> "ActionOutcome":
        """Return the outcome of an action that raised an exception."""
        return cls(ActionState.FAILED, f"{type(err).__name__} was raised.")


@dataclass(frozen=True, slots=True)
class ActionTrigger:
    """The finding that triggers an action.

    Attributes
    ----------
    rule
        The class name of the rule whose condition was met.
    text
        The finding as text.
    facts
        The finding as JSON-compatible data.
    """

    rule: str
    text: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Deadline:
    """The deadline of one action, in seconds from its construction."""

    def __init__(self, deadline_s: float = DEADLINE_S, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self._end = self.clock.monotonic() + deadline_s

    def remaining_s(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self._end - self.clock.monotonic())


class Action(ABC):
    """One action of a rule.

    Attributes
    ----------
    name
        Its name in JSON and in results.
    repeatable
        Whether the action is idempotent; only then it is repeated after a crash.
    stops_training
        Whether it stops a training; by default only an error triggers such an action.
    rule_name
        The name of the rule, for messages of `invoke`.
    """

    name: ClassVar[str]
    repeatable: ClassVar[bool] = False
    stops_training: ClassVar[bool] = False
    rule_name: str

    @property
    @abstractmethod
    def target(self) -> str:
        """The recipient or object of the action, masked."""

    def resolve(self, deadline: Deadline) -> "Action | ActionOutcome":
        """Return the action with all look-ups done, or the outcome if it must not be done.

        Has no side effects.
        """
        del deadline
        return self

    @abstractmethod
    def plan(self, trigger: ActionTrigger) -> str:
        """Return a sentence that describes what `carry_out` would do."""

    @abstractmethod
    def carry_out(self, trigger: ActionTrigger, deadline: Deadline) -> ActionOutcome:
        """Carry out the action; called on the result of `resolve`."""

    def invoke(self, message: str = "") -> None:
        """Carry out the action and log its outcome; never raises."""
        logger = get_logger()
        deadline = Deadline()

        def carry_out() -> ActionOutcome:
            resolved = self.resolve(deadline)
            if isinstance(resolved, ActionOutcome):
                return resolved
            return resolved.carry_out(ActionTrigger(self.rule_name, message), deadline)

        outcome = attempt(carry_out, ActionOutcome.of_error)
        log = logger.info if outcome.state is ActionState.DONE else logger.warning
        log(
            "Action %r (%s) of rule %r: %s. %s",
            self.name,
            self.target,
            self.rule_name,
            outcome.state,
            outcome.detail,
        )
