"""The documented exceptions.

::

    SMDebugError
    |-- SMDebugTypeError, SMDebugValueError, SMDebugRuntimeError, SMDebugNotImplementedError
    |-- MissingCollectionFiles                  the trial lacks collections files
    |-- IndexReaderException                    an index file is invalid
    |-- StepNotYetAvailable, StepUnavailable    may be saved later; was not saved
    |-- NoMoreData                              the training job ended before the step
    |-- TensorUnavailable                       no step has this tensor
    |-- TensorUnavailableForStep                the step does not have this tensor
    |   |-- TensorDamaged                       its bytes are truncated or corrupt
    |   `-- ShapeUnavailableForStep
    |-- InvalidWorker
    |-- RuleEvaluationConditionMet              the condition of the rule is met
    |-- InsufficientInformationForRuleInvocation
    |-- InvalidCollectionConfiguration, NoMoreProfilerData, SMDebugCustomerError
    `-- TrialFileError                          one file of a trial
        |-- TruncatedFileError                  truncated, may still grow
        `-- CorruptFileError                    permanently invalid
"""

# The documented class names have no "Error" suffix. Rules import them with
# `from smdebug.exceptions import *`.
# ruff: noqa: N818

from rule_core.modes import ModeKeys


class SMDebugError(Exception):
    """The base class of all errors of the engine."""


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of the wrong type."""


class SMDebugValueError(SMDebugError, ValueError):
    """An invalid value of the right type."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """An operation that is not possible in the current state."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """An operation that is not supported."""


class SMDebugCustomerError(SMDebugError):
    """An error in the user's configuration."""


class TrialFileError(SMDebugError):
    """An invalid file of a trial; `key` is its path below the trial's root."""

    def __init__(self, key: str, expected: str, got: str) -> None:
        super().__init__(key, expected, got)
        self.key = key
        self.expected = expected
        self.got = got

    def __str__(self) -> str:
        return f"File {self.key!r} is corrupt: expected {self.expected}, got {self.got}."


class TruncatedFileError(TrialFileError):
    """The file is truncated; it may still grow."""

    def __str__(self) -> str:
        return f"File {self.key!r} is cut off: expected {self.expected}, got {self.got}."


class CorruptFileError(TrialFileError):
    """The content of the file is permanently invalid."""


class IndexReaderException(SMDebugError):
    """An index file is invalid."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MissingCollectionFiles(SMDebugError):
    """The training job ended, or the timeout expired, before all collections files existed."""

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or "The training job has ended and not all of its collections files exist. "
            "Check that the hook was configured before training started."
        )


class _StepError(SMDebugError):
    """A step that does not exist."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode


class StepNotYetAvailable(_StepError):
    """The step has not been seen yet; the training job may still write it."""

    def __str__(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} was not seen yet."


class StepUnavailable(_StepError):
    """The step was not saved."""

    def __str__(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} was not saved."


class TensorUnavailable(SMDebugError):
    """No step seen so far has this tensor."""

    def __init__(self, tname: str) -> None:
        super().__init__(tname)
        self.tname = tname

    def __str__(self) -> str:
        return f"Tensor {self.tname!r} was not saved."


class TensorUnavailableForStep(SMDebugError):
    """The step does not have the value of this tensor.

    `has_reductions` is true if reductions of the tensor were saved at the step.
    """

    def __init__(
        self, tname: str, step: int, mode: ModeKeys = ModeKeys.GLOBAL, has_reductions: bool = False
    ) -> None:
        super().__init__(tname, step, mode, has_reductions)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions

    def __str__(self) -> str:
        where = f"Tensor {self.tname!r} has no value at step {self.step} of mode {self.mode.name}."
        if self.has_reductions:
            return f"{where} Reductions of it were saved at this step: ask for those."
        return where


class TensorDamaged(TensorUnavailableForStep):
    """The tensor was saved at the step, but its bytes are truncated, corrupt or missing.

    `reason` is a sentence that names the file and its problem.
    """

    def __init__(self, tname: str, step: int, mode: ModeKeys, reason: str) -> None:
        super().__init__(tname, step, mode)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"Tensor {self.tname!r} cannot be read at step {self.step} of mode "
            f"{self.mode.name}. {self.reason}"
        )


class ShapeUnavailableForStep(TensorUnavailableForStep):
    """Neither the shape nor the value of the tensor was saved at the step."""

    def __str__(self) -> str:
        return f"Tensor {self.tname!r} has no shape at step {self.step} of mode {self.mode.name}."


class NoMoreData(SMDebugError):
    """The training job ended before the step; `last_step` is the last step of the mode, or -1."""

    def __init__(self, step: int, mode: ModeKeys, last_step: int) -> None:
        super().__init__(step, mode, last_step)
        self.step = step
        self.mode = mode
        self.last_step = last_step
        self.msg = (
            f"The training job has ended before step {step} of mode {mode.name}: "
            f"its last step is {last_step}."
        )

    def __str__(self) -> str:
        return self.msg


class NoMoreProfilerData(SMDebugError):
    """The training job ended before the time stamp (microseconds since the epoch)."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(timestamp)
        self.timestamp = timestamp
        self.msg = f"The training job has ended before time stamp {timestamp} us."

    def __str__(self) -> str:
        return self.msg


class InvalidWorker(SMDebugError):
    """The worker is unknown or did not save the tensor at the step."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return f"No worker {self.worker!r} here."


class InvalidCollectionConfiguration(SMDebugError):
    """A collection without tensor names and patterns."""

    def __init__(self, c_name: str) -> None:
        super().__init__(c_name)
        self.c_name = c_name

    def __str__(self) -> str:
        return f"Collection {self.c_name!r} has neither patterns nor tensor names."


class RuleEvaluationConditionMet(SMDebugError):
    """The condition of the rule is met at `step`; with `end_of_rule` it needs no further steps."""

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def __str__(self) -> str:
        return (
            f"Evaluation of the rule {self.rule_name} at step {self.step} "
            "resulted in the condition being met\n"
        )


class InsufficientInformationForRuleInvocation(SMDebugError):
    """The rule cannot evaluate this step; `message` explains why."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def __str__(self) -> str:
        return f"Rule {self.rule_name} cannot judge: {self.message}"
