"""One invocation of a rule at one step: its outcome as data, never as an exception."""

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from rule_core.exceptions import (
    InsufficientInformationForRuleInvocation,
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from rule_core.model.segments import SEGMENT_STEPS, step_text
from rule_core.rules.evidence import Finding, Measured, Quantity
from rule_core.rules.rule import Rule
from rule_core.severity import Severity
from rule_core.storage.wait_budget import WaitEndedError
from rule_core.trials.snapshot_view import snapshot
from rule_runner.errors import ClientError, raised
from rule_runner.loading.process_state import ProcessState
from rule_runner.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rule_core.rules.wants import WantedMeasure
    from rule_core.trials.profiler_trial import ProfilerTrial
    from rule_core.trials.trial import Trial

_log: Final = get_logger(__name__)

NOTHING_READ: Final = "nothing read"
UNREADABLE: Final = "unreadable"
LATE: Final = "came too late"
RuleAndTrials = tuple[Rule, "Sequence[Trial | ProfilerTrial]"]
_SKIPPED: Final = (TensorUnavailableForStep, StepUnavailable, TensorUnavailable)


class InvocationOutcome(enum.Enum):
    """The outcome of one invocation of a rule."""

    CLEAR = enum.auto()  # judged, the condition is not met
    MET = enum.auto()  # judged, the condition is met
    SKIPPED = enum.auto()  # not judged
    WAITS = enum.auto()  # to be invoked again when there is more data
    ENDED = enum.auto()  # wants no further step
    FAILED = enum.auto()  # raised


@dataclass(frozen=True, slots=True)
class InvocationResult:
    """The result of one invocation.

    Attributes
    ----------
    reason
        Why the step was skipped, or a sentence on how the rule failed.
    findings
        Evidence; never empty if the condition is met.
    ends
        Whether the rule wants no further step.
    seconds
        Duration of the invocation.
    missed
        What the rule requested from its trials in vain, for messages.
    notes
        Problems of files that only the rule's own process has read.
    measurements
        Values measured against their limits.
    """

    did: InvocationOutcome
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    ends: bool = False
    seconds: float = 0.0
    missed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    measurements: tuple[Measured, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """Notes on a constructed rule, and the quantities that it measures."""

    notes: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()


class Invoker(Protocol):
    """Judges steps with one rule."""

    def begin(self) -> RuleInfo:
        """Wait until the rule is constructed, and describe it.

        Raises
        ------
        ClientError
            If it cannot be constructed.
        """
        ...

    def judge(self, step: int) -> InvocationResult:
        """Judge a global step that all trials of the rule have reached."""
        ...

    def wait(self, step: int) -> InvocationResult | None:
        """Judge that no data has followed a global step; None if the rule does not do that."""
        ...

    def finish(self, step: int) -> InvocationResult:
        """Let the rule finish: no step after this global step will be judged."""
        ...

    def close(self) -> None:
        """Release the resources of the rule."""
        ...


class InProcessInvoker:
    """Judges steps with a rule in this process.

    Before the first step of another segment the rule is constructed anew, unless it defines
    `Rule.segment_begins`: what it remembers of steps that the run has abandoned must not count.

    Parameters
    ----------
    name
        Name of the rule, for messages.
    trials
        The views of the base trial and the other trials that the rule was constructed with.
    process_state
        Process-wide settings of the rule; None if the rule does not change any.
    construct
        Constructs the rule anew, over new views; raises `ClientError` if that fails.
    """

    def __init__(
        self,
        name: str,
        rule: "Rule",
        trials: "Sequence[Trial | ProfilerTrial]",
        process_state: ProcessState | None = None,
        construct: "Callable[[], RuleAndTrials] | None" = None,
    ) -> None:
        self._name = name
        self._rule = rule
        self._trials = trials
        self._process_state = process_state
        self._construct = construct
        self._segment = 0

    def begin(self) -> RuleInfo:
        """Describe the rule; see `Invoker`."""
        return RuleInfo(quantities=self._rule.QUANTITIES)

    @property
    def wants(self) -> "Sequence[WantedMeasure] | None":
        """What the rule declares to measure; see `Rule.wants`."""
        return self._rule.wants

    def judge(self, step: int) -> InvocationResult:
        """Judge a global step; see `Invoker`."""
        if step // SEGMENT_STEPS != self._segment:
            failure = self._begin_segment(step)
            if failure:
                return InvocationResult(InvocationOutcome.FAILED, failure, ends=True)
        return self._invocation(step, self._rule.invoke)

    def _begin_segment(self, step: int) -> str:
        """Prepare the rule for the segment of a step; return how that failed, or ""."""
        self._segment = segment = step // SEGMENT_STEPS
        if type(self._rule).segment_begins is not Rule.segment_begins:
            did, reason, _ = self._invoke(step, lambda _: self._rule.segment_begins(segment))
            return reason if did is InvocationOutcome.FAILED else ""
        if self._construct is not None:
            try:
                self._rule, self._trials = self._construct()
            except ClientError as err:
                return str(err)
        return ""

    def wait(self, step: int) -> InvocationResult | None:
        """Judge that no data has followed a step; see `Invoker`."""
        if type(self._rule).invoke_while_waiting is Rule.invoke_while_waiting:
            return None

        def call(step: int) -> None:
            if self._rule.invoke_while_waiting(step):
                raise RuleEvaluationConditionMet(self._name, step)

        return self._invocation(step, call)

    def finish(self, step: int) -> InvocationResult:
        """Let the rule finish; see `Invoker`."""

        def call(step: int) -> None:
            if self._rule.invoke_at_end(step):
                raise RuleEvaluationConditionMet(self._name, step)

        return self._invocation(step, call)

    def _invocation(self, step: int, call: Callable[[int], None]) -> InvocationResult:
        """Call the rule and return the result."""
        reads, damaged = self._read_counts()
        started = time.perf_counter()
        did, reason, ends = self._invoke(step, call)
        seconds = time.perf_counter() - started
        findings, not_judged = self._rule.take_evidence()
        if did is InvocationOutcome.MET and not findings:
            findings = [Finding(step, severity=self._rule.SEVERITY)]
        if did is InvocationOutcome.MET and {each.severity for each in findings} == {Severity.NOTE}:
            did = InvocationOutcome.CLEAR
        if did is InvocationOutcome.CLEAR and not findings:
            reads_now, damaged_now = self._read_counts()
            reason = not_judged or ("" if reads_now > reads else NOTHING_READ)
            if reason and damaged_now > damaged:
                reason = UNREADABLE
            did = InvocationOutcome.SKIPPED if reason else InvocationOutcome.CLEAR
        missed: set[str] = set()
        for trial in self._trials:
            missed.update(trial.missed)
        measurements = tuple(self._rule.take_measurements())
        return InvocationResult(
            did, reason, tuple(findings), ends, seconds, tuple(sorted(missed)), (), measurements
        )

    def _read_counts(self) -> tuple[int, int]:
        """Return how many reads the trials have served, and how many met damaged data."""
        reads = damaged = 0
        for trial in self._trials:
            reads += trial.reads
            damaged += trial.damaged
        return reads, damaged

    def _invoke(
        self, step: int, call: Callable[[int], None]
    ) -> tuple[InvocationOutcome, str, bool]:
        """Call the rule, and turn everything that it can raise into data."""
        did, reason, ends = InvocationOutcome.CLEAR, "", False
        try:
            with snapshot(self._trials, step):
                if self._process_state is None:
                    call(step)
                else:
                    self._process_state.call(call, step)
        except RuleEvaluationConditionMet as met:
            did, ends = InvocationOutcome.MET, met.end_of_rule
        except _SKIPPED as err:
            did, reason = InvocationOutcome.SKIPPED, type(err).__name__
        except InsufficientInformationForRuleInvocation as err:
            did, reason = InvocationOutcome.SKIPPED, str(err.message)
        except StepNotYetAvailable as err:
            did, reason = InvocationOutcome.WAITS, type(err).__name__
        except WaitEndedError:
            did, reason = InvocationOutcome.SKIPPED, UNREADABLE
        except (NoMoreData, NoMoreProfilerData):
            did, ends = InvocationOutcome.ENDED, True
        except KeyboardInterrupt:  # raised by a signal handler of the calling program
            raise
        except BaseException as err:  # noqa: BLE001 - the user's code may raise anything
            _log.info("rule_failed", rule=self._name, step=step, exc_info=True)
            did, ends = InvocationOutcome.FAILED, True
            reason = raised(f"Rule {self._name!r}", err, f"at step {step_text(step)}")
        return did, reason, ends

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class WindowInvoker(InProcessInvoker):
    """Judges windows of profiler data with a rule in this process.

    A rule that keeps its own clock, and advances it by less than a window, is invoked until it
    has requested the whole window.

    Parameters
    ----------
    window_us
        Length of a window in microseconds.
    """

    def __init__(
        self,
        name: str,
        rule: "Rule",
        trials: "Sequence[Trial | ProfilerTrial]",
        process_state: ProcessState | None,
        window_us: int,
    ) -> None:
        super().__init__(name, rule, trials, process_state)
        self._window_us = window_us

    def judge(self, step: int) -> InvocationResult:
        """Judge a window; see `Invoker`."""
        return self._invocation(step, self._invoke_up_to)

    def _invoke_up_to(self, step: int) -> None:
        """Invoke the rule until it has waited for the end of window `step`."""
        trial: Any = self._trials[0]
        end = trial.first_timestamp + (step + 1) * self._window_us
        while True:
            requested = trial.waited_until
            self._rule.invoke(step)
            if not requested < trial.waited_until < min(end, trial.newest_timestamp):
                return
