"""Rule: the base class of all rules, built-in or custom."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from rule_core.exceptions import RuleEvaluationConditionMet
from rule_core.logger import get_logger
from rule_core.model.segments import step_text
from rule_core.rules.actions.actions import Actions
from rule_core.rules.doc_page import Page
from rule_core.rules.evidence import Finding, Measured, Quantity, Series, most_serious
from rule_core.rules.requirements import RequiredInput, RequiredTensors
from rule_core.rules.wants import WantedMeasure
from rule_core.severity import Severity
from rule_core.trials.snapshot_view import snapshot

if TYPE_CHECKING:
    from rule_core.rules.params import Param

S = TypeVar("S", bound=Series)
_NO_NOTES: Final[Mapping[Any, str]] = MappingProxyType({})


class Rule(ABC):
    """A rule evaluates one global step of a trial at a time.

    A subclass overrides `invoke_at_step` and returns whether its condition is met. It can also
    record evidence (`found`) or the reason why a step could not be evaluated (`not_judged`).

    Parameters
    ----------
    base_trial
        The trial to evaluate.
    action_str
        Actions as JSON text; see `smdebug.rules.action.Actions`.
    other_trials
        Further trials to compare with. Older rules pass this before `action_str`; the two are
        distinguished by their types.

    Attributes
    ----------
    PARAMS, READS, QUANTITIES, PAGE
        The declared parameters, a description of what is read, the measured quantities, and
        further documentation. All are optional for custom rules. A built-in rule declares the
        first three, and has a Markdown file in ``builtin_rules/pages`` in place of `PAGE`.
    SEVERITY
        The severity of findings that do not state their own. Custom rules that declare none find
        errors, so that the actions they request are carried out as ever.
    SAVED
        The collections that `train` saves for the rule, besides those that its parameters select.
        By default gradients, a guess.
    NEEDS_VALUES
        Whether reductions of these tensors are not enough.
    trials
        The base trial and the other trials.
    required_inputs
        The data that the trial must contain for the rule to evaluate any step. Built-in rules set
        them in the class, or in the constructor if they depend on parameters.
    report
        For the rule's own use.
    """

    PARAMS: ClassVar["tuple[Param, ...]"] = ()
    READS: ClassVar[str] = ""
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = ()
    PAGE: ClassVar[Page | None] = None
    SEVERITY: ClassVar[Severity] = Severity.ERROR
    SAVED: ClassVar[tuple[str, ...]] = ("gradients",)
    NEEDS_VALUES: ClassVar[bool] = True
    required_inputs: Sequence[RequiredInput] = ()
    _output_dir: Path | None = None

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
        self._has_begun = False
        self._findings: list[Finding] = []
        self._measurements: list[Measured] = []
        self._measurements_by_quantity: dict[str, Measured] = {}  # of those, by quantity
        self._not_judged: str | None = None
        self._warned_of_none = False

    @classmethod
    def rename_parameters(cls, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Map parameters to their declared names; by default they are returned unchanged."""
        return raw

    @classmethod
    def declared_actions(cls, arguments: Mapping[str, Any]) -> str:
        """Return the actions that the rule's parameters request, as JSON; "" by default."""
        del arguments
        return ""

    @classmethod
    def unsuited(cls, trial: Any) -> str:
        """Return why the rule cannot judge the kind of training in a trial; "" if it can.

        ``--rule auto`` leaves out the rules that return a reason.
        """
        del trial
        return ""

    @property
    def wants(self) -> Sequence[WantedMeasure] | None:
        """What the rule will measure, so that worker processes can do so before it asks.

        Declaring too much or too little costs time only. None, the default, declares nothing: all
        is measured in the process of the rule.
        """
        return None

    @property
    def output_dir(self) -> Path | None:
        """The folder for files that the rule writes, created when it is first asked for.

        The runner sets it after construction, unless the rule has set its own; otherwise None.
        """
        if self._output_dir is not None:
            with suppress(OSError):  # whoever writes to it says why
                Path(self._output_dir).mkdir(parents=True, exist_ok=True)
        return self._output_dir

    @output_dir.setter
    def output_dir(self, folder: Path | None) -> None:
        self._output_dir = folder

    @property
    def actions(self) -> Actions:
        """The actions to carry out when the condition is met, parsed from `action_str` on use."""
        if self._actions is None:
            self._actions = Actions(self._action_str, self.rule_name)
        return self._actions

    @actions.setter
    def actions(self, actions: Actions) -> None:
        self._actions = actions

    def set_required_tensors(self, step: int) -> None:  # noqa: B027 - most rules require none
        """Add the tensors that `invoke_at_step` requires to `req_tensors`; none by default."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> Any:
        """Evaluate a global step; return whether the condition is met."""

    def invoke_while_waiting(self, step: int) -> Any:
        """Evaluate a running trial that has nothing newer than global step `step`.

        Called about every second while no step is ready; return whether the condition is met, as at
        `step`. For rules about elapsed time; returns False by default.
        """
        del step
        return False

    def invoke_at_end(self, step: int) -> Any:
        """Finish when no step after global step `step` will be evaluated.

        Return whether the condition is met, as at `step`; the result counts if all saved steps were
        evaluated. For rules that need the end of the data; returns False by default.
        """
        del step
        return False

    def segment_begins(self, segment: int) -> None:  # noqa: B027 - most rules do not define it
        """Prepare for the steps of another segment: the training was resumed and repeats steps.

        If a rule overrides this, its object judges all segments, and this is called before the
        first step of each but the first. Otherwise a new object of the rule judges each segment.

        Parameters
        ----------
        segment
            The number of the segment; that of the first is 0.
        """

    def found(
        self,
        step: int,
        tensor: str | None = None,
        worker: str | None = None,
        measured: Any = None,
        limit: Any = None,
        note: str | None = None,
        severity: Severity | None = None,
        *,
        quantity: str | None = None,
        recovers: bool = False,
    ) -> bool:
        """Record evidence for a met condition, and return whether it is more than a note.

        Parameters
        ----------
        tensor, worker
            Where the condition was met.
        measured, limit
            The measured value and its limit, in the same unit.
        note
            One sentence for users.
        severity
            By default the rule's `SEVERITY`.
        quantity
            The name of the measured quantity.
        recovers
            Record instead that the condition no longer holds for this tensor and worker. It has no
            effect unless it was met before.

        Returns
        -------
        bool
            Whether the condition is met: False for `Severity.NOTE`, which is evidence only.

        Raises
        ------
        TypeError
            If `step` is not an integer.
        """
        severity = Severity(self.SEVERITY if severity is None else severity)
        number, since = operator.index(step), None
        if recovers:
            severity, since = Severity.NOTE, number
        finding = Finding(number, tensor, worker, measured, limit, note, severity, quantity, since)
        self._findings.append(finding)
        return finding.counts

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
        severity: Severity | None = None,
    ) -> bool:
        """Record a measurement and its limit, and if the condition is `met`, also evidence.

        Every point appears in the report's chart of `quantity`, which may be one of `QUANTITIES`.
        The evidence has the given `severity`, by default the rule's.

        Returns
        -------
        bool
            `met`; False for `Severity.NOTE`, which is evidence only.

        Raises
        ------
        TypeError, ValueError
            If `step` is not an integer, or `measured` or `limit` is not a number.
        """
        step, value, bound = operator.index(step), float(measured), float(limit)
        self._measurements_of(step, quantity, bound).append(((tensor, worker), value, bool(met)))
        return bool(met) and self.found(
            step, tensor, worker, measured, limit, note, severity, quantity=quantity
        )

    def measured_all(
        self,
        step: int,
        quantity: str,
        measured: Mapping[S, Any],
        limit: Any,
        *,
        met: Collection[S],
        notes: Mapping[S, str] = _NO_NOTES,
        severity: Severity | None = None,
    ) -> bool:
        """Record measurements of several tensors against one limit; see `measured`.

        Parameters
        ----------
        measured
            Values by tensor and worker.
        met
            The tensors and workers whose condition is met.
        notes
            Sentences for users about some of those.
        severity
            Of the evidence; by default the rule's.

        Returns
        -------
        bool
            Whether the condition is met for any of them; False for `Severity.NOTE`.

        Raises
        ------
        TypeError, ValueError
            As `measured`.
        """
        step, values, bound = operator.index(step), [*map(float, measured.values())], float(limit)
        flags = [series in met for series in measured] if met else [False] * len(values)
        points = self._measurements_of(step, quantity, bound)
        points.extend(zip(measured, values, flags, strict=True))
        is_met = False
        for series in compress(measured, flags):
            tensor, worker = series
            note, amount = notes.get(series), measured[series]
            is_met |= self.found(
                step, tensor, worker, amount, limit, note, severity, quantity=quantity
            )
        return is_met

    def _measurements_of(
        self, step: int, quantity: str, limit: float
    ) -> list[tuple[Series, float, bool]]:
        """Return the points of a quantity at a step, to append to."""
        latest = self._measurements_by_quantity.get(quantity)
        if latest is None or (latest.step, latest.limit) != (step, limit):
            latest = self._measurements_by_quantity[quantity] = Measured(step, quantity, limit)
            self._measurements.append(latest)
        return latest.points

    def not_judged(self, reason: str) -> bool:
        """Record why this step could not be evaluated; return False."""
        self._not_judged = reason
        return False

    def take_evidence(self) -> tuple[list[Finding], str | None]:
        """Return and clear what `found` and `not_judged` recorded since the last call."""
        evidence = (self._findings, self._not_judged)
        self._findings, self._not_judged = [], None
        return evidence

    def take_measurements(self) -> list[Measured]:
        """Return and clear what `measured` and `measured_all` recorded since the last call."""
        measurements, self._measurements = self._measurements, []
        self._measurements_by_quantity = {}
        return measurements

    def invoke(self, step: int) -> None:
        """Wait for a global step and evaluate it; later steps are hidden meanwhile.

        Raises
        ------
        RuleEvaluationConditionMet
            If the condition is met, after the rule's actions. Notes alone do not meet it.
        """
        self.base_trial.wait_for_steps([step])
        if not self._has_begun:
            self._choose_whole_trials()
        with snapshot(self.trials, step):
            self.req_tensors.clear()
            self.set_required_tensors(step)
            self.req_tensors.fetch()
            severity = self.met_severity(self._answer_at, step)
        if severity is not None:
            self.carry_out_actions(step, severity)
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def _choose_whole_trials(self) -> None:
        """Before the first step, show the other trials that have ended as a whole."""
        self._has_begun = True
        for trial in self.trials[1:]:
            if trial is not self.base_trial:
                trial.maybe_refresh()
                trial.is_whole = trial.loaded_all_steps

    def met_severity(self, judge: Callable[[int], Any], step: int) -> Severity | None:
        """Let a method of the rule judge a global step; return how serious the met condition is.

        Returns
        -------
        Severity or None
            That of the most serious finding that the method recorded, by default `SEVERITY`. None
            if the condition is not met: the method returned a false value, or only recorded notes.
        """
        recorded = len(self._findings)
        if not judge(step):
            return None
        severity = most_serious(self._findings[recorded:], self.SEVERITY)
        return None if severity is Severity.NOTE else severity

    def carry_out_actions(self, step: int, severity: Severity = Severity.ERROR) -> None:
        """Carry out the rule's actions after its condition was met at a global step.

        Actions that stop a training need an error; see `Actions.stop_on`.
        """
        where = f"at step {step_text(step)}"
        message = f"The condition of rule {self.rule_name} was met {where}."
        if severity is Severity.ERROR:  # actions of users may take only the message
            self.actions.invoke(message)
        else:
            self.actions.invoke(message, severity)

    def _answer_at(self, step: int) -> Any:
        """Return the answer of `invoke_at_step`; warn once if it is None."""
        result = self.invoke_at_step(step)
        if result is None and not self._warned_of_none:
            self._warned_of_none = True
            self.logger.warning(
                "Rule %r returned None, which counts as False. Return True or False.",
                self.rule_name,
            )
        return result
