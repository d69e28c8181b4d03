"""One invocation of a rule at one step: what the rule did, as data and never as an exception."""

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from rule_runner.surroundings import Surroundings
from rule_runner.wording import raised
from smdebug.analysis.utils import snapshot
from smdebug.exceptions import (
    InsufficientInformationForRuleInvocation,
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules.evidence import Finding, Measured, Quantity
from smdebug.rules.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smdebug.trials import Trial
    from smdebug.trials.profiler_trial import ProfilerTrial

_log: Final = structlog.get_logger()

NOTHING_READ: Final = "nothing read"
UNREADABLE: Final = "unreadable"
LATE: Final = "came too late"
_SKIPPED: Final = (TensorUnavailableForStep, StepUnavailable, TensorUnavailable)


class Did(enum.Enum):
    """What a rule did at a step."""

    CLEAR = enum.auto()  # judged, the condition is not met
    MET = enum.auto()  # judged, the condition is met
    SKIPPED = enum.auto()  # not judged
    WAITS = enum.auto()  # wants to be asked again when there is more
    ENDED = enum.auto()  # wants no further step
    FAILED = enum.auto()  # raised


@dataclass(frozen=True, slots=True)
class Invocation:
    """What came of one invocation.

    Attributes
    ----------
    reason
        Why the step was skipped, or the sentence that says how the rule failed.
    findings
        Evidence; of a met condition never empty.
    ends
        Whether the rule wants no further step.
    seconds
        How long it took.
    missed
        What the rule asked its trials for and did not get, for people.
    notes
        What is wrong with files that only the rule's own process has met.
    measurements
        What was measured against its limit.
    """

    did: Did
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    ends: bool = False
    seconds: float = 0.0
    missed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    measurements: tuple[Measured, ...] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a rule once it was made: remarks for people, and what it measures."""

    notes: tuple[str, ...] = ()
    quantities: tuple[Quantity, ...] = ()


class Invoker(Protocol):
    """Judges steps with one rule."""

    def begin(self) -> Begun:
        """Say that the rule was made; wait for it, if somebody else makes it.

        Raises
        ------
        ClientError
            If it cannot be made.
        """
        ...

    def judge(self, step: int) -> Invocation:
        """Judge a global step that all trials of the rule have, or have passed."""
        ...

    def wait(self, step: int) -> Invocation | None:
        """Judge that nothing has come after a global step; None if the rule does not care."""
        ...

    def finish(self, step: int) -> Invocation:
        """Let the rule do what is left when nothing after a global step will be judged."""
        ...

    def close(self) -> None:
        """Let go of what the rule holds."""
        ...


class InProcess:
    """Judges steps with a rule in this process.

    Parameters
    ----------
    name
        Name of the rule, for messages.
    trials
        The views of the base trial and the other trials that the rule was constructed with.
    surroundings
        What the rule has to itself of this process; None if it leaves the process as it is.
    """

    def __init__(
        self,
        name: str,
        rule: "Rule",
        trials: "Sequence[Trial | ProfilerTrial]",
        surroundings: Surroundings | None = None,
    ) -> None:
        self._name = name
        self._rule = rule
        self._trials = trials
        self._surroundings = surroundings

    def begin(self) -> Begun:
        """Say that the rule was made; see `Invoker`."""
        return Begun(quantities=self._rule.QUANTITIES)

    def judge(self, step: int) -> Invocation:
        """Judge a global step; see `Invoker`."""
        return self._invocation(step, self._rule.invoke)

    def wait(self, step: int) -> Invocation | None:
        """Judge that nothing has come after a step; see `Invoker`."""
        if type(self._rule).invoke_while_waiting is Rule.invoke_while_waiting:
            return None

        def ask(step: int) -> None:
            if self._rule.invoke_while_waiting(step):
                raise RuleEvaluationConditionMet(self._name, step)

        return self._invocation(step, ask)

    def finish(self, step: int) -> Invocation:
        """Let the rule do what is left; see `Invoker`."""

        def ask(step: int) -> None:
            if self._rule.invoke_at_end(step):
                raise RuleEvaluationConditionMet(self._name, step)

        return self._invocation(step, ask)

    def _invocation(self, step: int, call: Callable[[int], None]) -> Invocation:
        """Return what came of a call of the rule."""
        before = sum(trial.reads for trial in self._trials)
        damaged = sum(trial.damaged for trial in self._trials)
        started = time.perf_counter()
        did, reason, ends = self._invoke(step, call)
        seconds = time.perf_counter() - started
        findings, not_judged = self._rule.take_evidence()
        if did is Did.MET and not findings:
            findings = [Finding(step)]
        if did is Did.CLEAR and not findings:
            read = sum(trial.reads for trial in self._trials) > before
            reason = not_judged or ("" if read else NOTHING_READ)
            if reason and sum(trial.damaged for trial in self._trials) > damaged:
                reason = UNREADABLE
            did = Did.SKIPPED if reason else Did.CLEAR
        missed = tuple(sorted({one for trial in self._trials for one in trial.missed}))
        measurements = tuple(self._rule.take_measurements())
        return Invocation(did, reason, tuple(findings), ends, seconds, missed, (), measurements)

    def _invoke(self, step: int, call: Callable[[int], None]) -> tuple[Did, str, bool]:
        """Call the rule, and make data of all that it can raise: nothing gets past here."""
        did, reason, ends = Did.CLEAR, "", False
        try:
            with snapshot(self._trials, step):
                if self._surroundings is None:
                    call(step)
                else:
                    self._surroundings.call(call, step)
        except RuleEvaluationConditionMet as met:
            did, ends = Did.MET, met.end_of_rule
        except _SKIPPED as err:
            did, reason = Did.SKIPPED, type(err).__name__
        except InsufficientInformationForRuleInvocation as err:
            did, reason = Did.SKIPPED, str(err.message)
        except StepNotYetAvailable as err:
            did, reason = Did.WAITS, type(err).__name__
        except (NoMoreData, NoMoreProfilerData):
            did, ends = Did.ENDED, True
        except KeyboardInterrupt:  # of whoever evaluates with signal handlers of their own
            raise
        except BaseException as err:  # noqa: BLE001 - it is the user's code
            _log.info("rule_failed", rule=self._name, step=step, exc_info=True)
            did, ends = Did.FAILED, True
            reason = raised(f"Rule {self._name!r}", err, f"at step {step}")
        return did, reason, ends

    def close(self) -> None:
        """Nothing to let go of."""


class OverWindows(InProcess):
    """Judges windows of profiler data with a rule in this process.

    A rule that keeps a clock of its own, and moves it by less than a window, is invoked until it
    has asked for all of the window.

    Parameters
    ----------
    window_us
        How long a window is, in microseconds.
    """

    def __init__(
        self,
        name: str,
        rule: "Rule",
        trials: "Sequence[Trial | ProfilerTrial]",
        surroundings: Surroundings | None,
        window_us: int,
    ) -> None:
        super().__init__(name, rule, trials, surroundings)
        self._window_us = window_us

    def judge(self, step: int) -> Invocation:
        """Judge a window; see `Invoker`."""
        return self._invocation(step, self._invoke_up_to)

    def _invoke_up_to(self, step: int) -> None:
        """Invoke the rule until it has waited for the end of window `step`."""
        trial: Any = self._trials[0]
        end = trial.first_timestamp + (step + 1) * self._window_us
        while True:
            asked = trial.waited_until
            self._rule.invoke(step)
            if not asked < trial.waited_until < min(end, trial.newest_timestamp):
                return
