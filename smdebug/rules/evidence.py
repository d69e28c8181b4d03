"""Evidence: what a rule found, and what it measured against its limits, as plain data."""

from dataclasses import dataclass, field
from typing import Any, Literal

Series = tuple[str | None, str | None]  # tensor, worker


@dataclass(frozen=True, slots=True)
class Finding:
    """One time that a rule's condition was met: what was measured, against which limit."""

    step: int
    tensor: str | None = None
    worker: str | None = None
    measured: Any = None
    limit: Any = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a rule measures, for whoever draws it.

    Attributes
    ----------
    name
        What `Rule.measured` calls it.
    label
        What stands at the axis, with the unit.
    worse
        On which side of the limit the condition is met.
    log
        Whether it is drawn on a logarithmic axis.
    """

    name: str
    label: str
    worse: Literal["above", "below"] = "above"
    log: bool = False


@dataclass(slots=True)
class Measured:
    """What was measured of a quantity at a step against one limit: of many tensors.

    Attributes
    ----------
    points
        Tensor and worker, what was measured there, and whether the condition was met.
    """

    step: int
    quantity: str
    limit: float
    points: list[tuple[Series, float, bool]] = field(default_factory=list)
