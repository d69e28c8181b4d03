"""Evidence: the findings and measurements of a rule, as plain data."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rule_core.severity import Severity

Series = tuple[str | None, str | None]  # tensor, worker


class Explanation(NamedTuple):
    """What is wrong with a training, and the first remedy: one sentence each."""

    summary: str
    advice: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One occasion on which a rule's condition was met: the measured value and its limit.

    A finding of severity `Severity.NOTE` records something worth knowing beside the condition.
    Such a note can say that the condition holds no longer.

    Attributes
    ----------
    quantity
        The measured quantity; None if the rule does not name it. Two findings of a tensor with
        different quantities are open at the same time. Equality ignores it.
    recovered_at
        The global step at which the condition no longer held for this tensor and worker; None if
        it still does. In a note: that it no longer holds since the note's step.
    muted
        Why the evaluation mutes the finding; None if it does not. A muted finding never meets a
        condition. Rules do not set it, nor what follows.
    mode
        The mode of the tensor at that step, such as ``EVAL``; None in training, or if it is
        unknown.
    summary, advice
        What is wrong, and the first remedy: one sentence each, None if there is none.
    """

    step: int
    tensor: str | None = None
    worker: str | None = None
    measured: Any = None
    limit: Any = None
    note: str | None = None
    severity: Severity = Severity.ERROR
    quantity: str | None = field(default=None, compare=False)
    recovered_at: int | None = None
    muted: str | None = None
    mode: str | None = None
    summary: str | None = None
    advice: str | None = None

    @property
    def series(self) -> Series:
        """The tensor and the worker."""
        return self.tensor, self.worker

    @property
    def counts(self) -> bool:
        """Whether the finding meets the condition: it is neither a note nor muted."""
        return self.severity is not Severity.NOTE and self.muted is None


def most_serious(findings: Iterable[Finding], default: Severity) -> Severity:
    """Return the severity of the most serious finding, or `default` if there is none."""
    severities = (finding.severity for finding in findings)
    return max(severities, key=lambda severity: severity.rank, default=default)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity that a rule measures, for charts.

    Attributes
    ----------
    name
        Its name in `Rule.measured`.
    label
        The axis label, with the unit.
    worse
        The side of the limit on which the condition is met.
    log
        Whether to draw it on a logarithmic axis.
    """

    name: str
    label: str
    worse: Literal["above", "below"] = "above"
    log: bool = False


@dataclass(slots=True)
class Measured:
    """The measurements of a quantity at a step against one limit, for several tensors.

    Attributes
    ----------
    points
        Tensor and worker, measured value, and whether the condition was met.
    """

    step: int
    quantity: str
    limit: float
    points: list[tuple[Series, float, bool]] = field(default_factory=list)
