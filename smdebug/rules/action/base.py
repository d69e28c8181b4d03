"""Action: one thing that is done when a condition is met, in a limited time; outcomes are data."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from smdebug.core.clock import Clock, SystemClock
from smdebug.core.logger import get_logger

DEADLINE_S: Final = 30.0


class ActionState(enum.StrEnum):
    """How far an action came."""

    INTENDED = "intended"  # about to be carried out
    DONE = "done"
    FAILED = "failed"  # tried, and not done
    REFUSED = "refused"  # not tried
    DRY_RUN = "dry_run"  # not tried, since nothing was to be
    UNKNOWN = "unknown"  # tried, and perhaps done


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an action: its state, and a sentence that shows no endpoint and no secret."""

    state: ActionState
    detail: str


@dataclass(frozen=True, slots=True)
class Fired:
    """What an action is told.

    Attributes
    ----------
    rule
        Class name of the rule whose condition was met.
    text
        What was seen, for people.
    facts
        The same for machines, as JSON has it.
    """

    rule: str
    text: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Limits:
    """The time that one action may take, from now on, in seconds."""

    def __init__(self, deadline_s: float = DEADLINE_S, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self._end = self.clock.monotonic() + deadline_s

    def left(self) -> float:
        """Return the seconds that are left, at least 0."""
        return max(0.0, self._end - self.clock.monotonic())


class Action(ABC):
    """One action of a rule.

    Attributes
    ----------
    name
        What it is called in JSON and in results.
    repeatable
        Whether doing it twice is like doing it once: then it is done again after a crash in the
        middle of it; anything else is not.
    rule_name
        Name of the rule, for messages of `invoke`.
    """

    name: ClassVar[str]
    repeatable: ClassVar[bool] = False
    rule_name: str

    @property
    @abstractmethod
    def target(self) -> str:
        """Whom or what it concerns, masked."""

    def settled(self, limits: Limits) -> "Action | Outcome":
        """Return the action with all that is to be looked up, or why it is not to be done.

        Changes nothing anywhere.
        """
        del limits
        return self

    @abstractmethod
    def plan(self, fired: Fired) -> str:
        """Return a sentence on what `carry_out` would do."""

    @abstractmethod
    def carry_out(self, fired: Fired, limits: Limits) -> Outcome:
        """Do it once; called on what `settled` returned."""

    def invoke(self, message: str = "") -> None:
        """Do it now, and log what came of it; raises nothing."""
        logger = get_logger()
        limits = Limits()
        try:
            found = self.settled(limits)
            done = (
                found
                if isinstance(found, Outcome)
                else found.carry_out(self._told(message), limits)
            )
        except Exception as err:  # noqa: BLE001 - an action never costs a verdict
            done = Outcome(ActionState.FAILED, f"{type(err).__name__} was raised.")
        log = logger.info if done.state is ActionState.DONE else logger.warning
        log(
            "Action %r (%s) of rule %r: %s. %s",
            self.name,
            self.target,
            self.rule_name,
            done.state,
            done.detail,
        )

    def _told(self, message: str) -> Fired:
        return Fired(self.rule_name, message)
