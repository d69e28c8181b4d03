"""Rule: the base class of every rule, built-in or the user's own."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from smdebug.analysis.utils import snapshot
from smdebug.core.logger import get_logger
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.rules.action import Actions
from smdebug.rules.evidence import Finding, Measured, Quantity, Series
from smdebug.rules.page import Page
from smdebug.rules.req_tensors import RequiredTensors

if TYPE_CHECKING:
    from smdebug.rules.params import Param

S = TypeVar("S", bound=Series)
_NO_NOTES: Final[Mapping[Any, str]] = MappingProxyType({})


class Rule(ABC):
    """A rule judges one global step of a trial at a time.

    A subclass overrides `invoke_at_step` and returns whether its condition is met. Besides the
    boolean it may say what it saw (`found`) or that it could not judge (`not_judged`).

    Parameters
    ----------
    base_trial
        The trial that is judged.
    action_str
        JSON text of actions; see `smdebug.rules.action.Actions`.
    other_trials
        Further trials to compare with. Older rules give this before `action_str`: the two are
        told apart by their types.

    Attributes
    ----------
    PARAMS, READS, QUANTITIES, PAGE
        Declared parameters, what is read in words, what is measured, and further documentation;
        built-in rules have them all, others may leave them out.
    trials
        The base trial and the other trials.
    report
        Free for the rule's own use.
    output_dir
        The folder for files that the rule writes: the rule job's output folder, which the runner
        sets once the rule is constructed unless the rule has one of its own; None without it.
    """

    PARAMS: ClassVar["tuple[Param, ...]"] = ()
    READS: ClassVar[str] = ""
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = ()
    PAGE: ClassVar[Page | None] = None
    output_dir: Path | None = None

    def __init__(self, base_trial: Any, action_str: Any = "", other_trials: Any = None) -> None:
        if isinstance(other_trials, str) or not isinstance(action_str, (str, type(None))):
            action_str, other_trials = other_trials, action_str
        if other_trials is not None and not isinstance(other_trials, (list, tuple)):
            other_trials = [other_trials]
        self.base_trial = base_trial
        self.other_trials = other_trials
        self.trials: list[Any] = [base_trial, *(other_trials or ())]
        self.req_tensors = RequiredTensors(base_trial, other_trials)
        self.rule_name = type(self).__name__
        self.logger = get_logger(self.rule_name)
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }
        self._action_str: str = action_str or ""
        self._actions: Actions | None = None
        self._findings: list[Finding] = []
        self._measurements: list[Measured] = []
        self._not_judged: str | None = None
        self._warned_of_none = False

    @classmethod
    def respelled(cls, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return parameters as given, by their declared names; by default they have those."""
        return raw

    @classmethod
    def declared_actions(cls, arguments: Mapping[str, Any]) -> str:
        """Return the actions, as JSON, that the rule's own parameters ask for; "" by default."""
        del arguments
        return ""

    @property
    def actions(self) -> Actions:
        """What is done when the condition is met, read from `action_str` when first asked for."""
        if self._actions is None:
            self._actions = Actions(self._action_str, self.rule_name)
        return self._actions

    @actions.setter
    def actions(self, actions: Actions) -> None:
        self._actions = actions

    def set_required_tensors(self, step: int) -> None:  # noqa: B027 - most rules require none
        """Add to `req_tensors` what `invoke_at_step` cannot do without; does nothing by default."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> Any:
        """Judge a global step; a true answer says that the condition is met."""

    def invoke_while_waiting(self, step: int) -> Any:
        """Judge a trial that has not ended and has nothing newer than global step `step`.

        Called every second or so while there is nothing to judge; a true answer says that the
        condition is met, as at `step`. For rules that judge time; False by default.
        """
        del step
        return False

    def invoke_at_end(self, step: int) -> Any:
        """Do what is left when no step after global step `step` will be judged.

        A true answer says that the condition is met, as at `step`; it counts if all that the trial
        saved was judged. For rules that wait for what ends with the data; False by default.
        """
        del step
        return False

    def found(
        self,
        step: int,
        tensor: str | None = None,
        worker: str | None = None,
        measured: Any = None,
        limit: Any = None,
        note: str | None = None,
    ) -> bool:
        """Record evidence for a met condition, and return True.

        Parameters
        ----------
        tensor, worker
            Where it was seen.
        measured, limit
            What was seen, and what it was compared with, in the same unit.
        note
            One sentence for people.

        Raises
        ------
        TypeError
            If `step` is no integer.
        """
        self._findings.append(Finding(operator.index(step), tensor, worker, measured, limit, note))
        return True

    def measured(
        self,
        step: int,
        quantity: str,
        measured: Any,
        limit: Any,
        *,
        met: bool,
        tensor: str | None = None,
        worker: str | None = None,
        note: str | None = None,
    ) -> bool:
        """Record what was measured against its limit; if the condition is `met`, as evidence too.

        Every point goes into the report's chart of `quantity`, which may be one of `QUANTITIES`.

        Returns
        -------
        bool
            `met`.

        Raises
        ------
        TypeError, ValueError
            If `step` is no integer, or `measured` or `limit` is no number.
        """
        at, value, bound = operator.index(step), float(measured), float(limit)
        self._measurements_of(at, quantity, bound).append(((tensor, worker), value, bool(met)))
        if met:
            self.found(step, tensor, worker, measured, limit, note)
        return bool(met)

    def measured_all(
        self,
        step: int,
        quantity: str,
        measured: Mapping[S, Any],
        limit: Any,
        *,
        met: Collection[S],
        notes: Mapping[S, str] = _NO_NOTES,
    ) -> bool:
        """Record what was measured of many tensors against one limit; see `measured`.

        Parameters
        ----------
        measured
            By tensor and worker.
        met
            Those of them whose condition is met.
        notes
            A sentence for people on some of those.

        Returns
        -------
        bool
            Whether any condition is met.

        Raises
        ------
        TypeError, ValueError
            As `measured`.
        """
        at, values, bound = operator.index(step), [*map(float, measured.values())], float(limit)
        flags = [one in met for one in measured] if met else [False] * len(values)
        self._measurements_of(at, quantity, bound).extend(zip(measured, values, flags, strict=True))
        for one in compress(measured, flags):
            tensor, worker = one
            self.found(step, tensor, worker, measured[one], limit, notes.get(one))
        return any(flags)

    def _measurements_of(
        self, step: int, quantity: str, limit: float
    ) -> list[tuple[Series, float, bool]]:
        """Return what takes more of the same."""
        if self._measurements:
            last = self._measurements[-1]
            if (last.step, last.limit, last.quantity) == (step, limit, quantity):
                return last.points
        self._measurements.append(Measured(step, quantity, limit))
        return self._measurements[-1].points

    def not_judged(self, reason: str) -> bool:
        """Record that this step could not be judged, and why; return False."""
        self._not_judged = reason
        return False

    def take_evidence(self) -> tuple[list[Finding], str | None]:
        """Return, and forget, what `found` and `not_judged` recorded since the last call."""
        evidence = (self._findings, self._not_judged)
        self._findings, self._not_judged = [], None
        return evidence

    def take_measurements(self) -> list[Measured]:
        """Return, and forget, what `measured` and its like recorded since the last call."""
        measurements, self._measurements = self._measurements, []
        return measurements

    def invoke(self, step: int) -> None:
        """Wait for a global step and judge it; the trials show nothing later meanwhile.

        Raises
        ------
        RuleEvaluationConditionMet
            If the condition is met, after the rule's actions.
        """
        self.base_trial.wait_for_steps([step])
        with snapshot(self.trials, step):
            self.req_tensors.clear()
            self.set_required_tensors(step)
            self.req_tensors.fetch()
            met = self._truth(self.invoke_at_step(step))
        if met:
            self.carry_out_actions(step)
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def carry_out_actions(self, step: int) -> None:
        """Do what is to be done now that the condition is met at a global step."""
        self.actions.invoke(f"The condition of rule {self.rule_name} was met at step {step}.")

    def _truth(self, answer: Any) -> bool:
        if answer is None and not self._warned_of_none:
            self._warned_of_none = True
            self.logger.warning(
                "Rule %r returned None, which counts as False. Return True or False.",
                self.rule_name,
            )
        return bool(answer)
