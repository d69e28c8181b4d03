"""Page: the prose of a rule's documentation page."""

import inspect
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Page:
    """The sections of a rule's page that its class does not declare otherwise, as Markdown.

    Attributes
    ----------
    why
        Why the finding matters.
    save
        How a training job saves what the rule reads.
    missing
        How the rule handles NaN, missing tensors and too few steps.
    remedy
        What to do when it fires, as a list.
    limits
        Known false negatives and false positives, and the parameters that avoid them; "" if none.
    severity
        Why the rule's findings have their severity, in one or two sentences.
    """

    why: str
    save: str
    missing: str
    remedy: str
    limits: str = ""
    severity: str = ""

    def __post_init__(self) -> None:
        """Remove the indentation."""
        for field in fields(self):
            object.__setattr__(self, field.name, inspect.cleandoc(getattr(self, field.name)))
