"""The exceptions that rules catch, under their documented names.

::

    SMDebugError
    |-- SMDebugTypeError, SMDebugValueError, SMDebugRuntimeError, SMDebugNotImplementedError
    |-- MissingCollectionFiles                  the trial holds no (or not all) collections files
    |-- IndexReaderException                    an index file could not be understood
    |-- StepNotYetAvailable, StepUnavailable    later perhaps; never
    |-- NoMoreData                              the training job ended before that step
    |-- TensorUnavailable                       no step has this tensor
    |-- TensorUnavailableForStep                this step has not
    |   |-- TensorDamaged                       its bytes are cut off or corrupt
    |   `-- ShapeUnavailableForStep
    |-- InvalidWorker
    |-- RuleEvaluationConditionMet              the rule found what it looks for
    |-- InsufficientInformationForRuleInvocation
    |-- InvalidCollectionConfiguration, NoMoreProfilerData, SMDebugCustomerError
    `-- TrialFileError                          one file of a trial
        |-- TruncatedFileError                  cut off: ask again when it has grown
        `-- CorruptFileError                    will not become right by waiting
"""

# The documented class names have no "Error" suffix, and `from smdebug.exceptions import *` is
# how rules import them.
# ruff: noqa: N818

from smdebug.core.modes import ModeKeys

__all__ = [
    "CorruptFileError",
    "IndexReaderException",
    "InsufficientInformationForRuleInvocation",
    "InvalidCollectionConfiguration",
    "InvalidWorker",
    "MissingCollectionFiles",
    "ModeKeys",
    "NoMoreData",
    "NoMoreProfilerData",
    "RuleEvaluationConditionMet",
    "SMDebugCustomerError",
    "SMDebugError",
    "SMDebugNotImplementedError",
    "SMDebugRuntimeError",
    "SMDebugTypeError",
    "SMDebugValueError",
    "ShapeUnavailableForStep",
    "StepNotYetAvailable",
    "StepUnavailable",
    "TensorDamaged",
    "TensorUnavailable",
    "TensorUnavailableForStep",
    "TrialFileError",
    "TruncatedFileError",
]


class SMDebugError(Exception):
    """Root of all errors of the analysis core."""


class SMDebugTypeError(SMDebugError, TypeError):
    """A value of the wrong type."""


class SMDebugValueError(SMDebugError, ValueError):
    """A value of the right type that cannot be used."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """Something that cannot be done in the present state."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """Something that is not offered."""


class SMDebugCustomerError(SMDebugError):
    """An error in the user's configuration."""


class TrialFileError(SMDebugError):
    """One file of a trial cannot be used: `key` is its place below the trial's root."""

    def __init__(self, key: str, expected: str, got: str) -> None:
        super().__init__(key, expected, got)
        self.key = key
        self.expected = expected
        self.got = got

    def __str__(self) -> str:
        return f"File {self.key!r} is corrupt: expected {self.expected}, got {self.got}."


class TruncatedFileError(TrialFileError):
    """The file ends before its content does; it may still be growing."""

    def __str__(self) -> str:
        return f"File {self.key!r} is cut off: expected {self.expected}, got {self.got}."


class CorruptFileError(TrialFileError):
    """The file's content is wrong, and waiting will not mend it."""


class IndexReaderException(SMDebugError):
    """An index file could not be understood."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MissingCollectionFiles(SMDebugError):
    """The training job ended, or time ran out, before its collections files were there."""

    def __init__(self, message: str = "") -> None:
        super().__init__(
            message
            or "The training job has ended and not all of its collections files are there. "
            "Check that the hook was configured before the training started."
        )


class StepNotYetAvailable(SMDebugError):
    """The step was not seen so far; the training job may still write it."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return f"Step {self.step} of mode {self.mode.name} was not seen yet."


class StepUnavailable(SMDebugError):
    """The step was not saved and will not be."""

    def __init__(self, step: int, mode: ModeKeys) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

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
    """The step does not have this tensor, or not its value.

    `has_reductions` tells that reductions of the tensor were saved at the step.
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
    """The tensor was saved at the step, and its bytes are cut off, corrupt or gone.

    `reason` is the sentence that names the file and what is wrong with it.
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
    """The training job has ended before the step; `last_step` is the mode's last one, or -1."""

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
    """The training job has ended before the time stamp (microseconds since the epoch)."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(timestamp)
        self.timestamp = timestamp
        self.msg = f"The training job has ended before time stamp {timestamp} us."

    def __str__(self) -> str:
        return self.msg


class InvalidWorker(SMDebugError):
    """The worker did not save this tensor at this step, or is not known at all."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return f"No worker {self.worker!r} here."


class InvalidCollectionConfiguration(SMDebugError):
    """A collection that names no tensor and holds no pattern."""

    def __init__(self, c_name: str) -> None:
        super().__init__(c_name)
        self.c_name = c_name

    def __str__(self) -> str:
        return f"Collection {self.c_name!r} has neither patterns nor tensor names."


class RuleEvaluationConditionMet(SMDebugError):
    """The rule found at `step` what it looks for; with `end_of_rule` it wants no further step."""

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
    """The rule cannot judge this step: `message` says what it lacks."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def __str__(self) -> str:
        return f"Rule {self.rule_name} cannot judge: {self.message}"
