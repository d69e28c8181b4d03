"""Page: what the documentation of a rule says in words."""

import inspect
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Page:
    """What a rule's page says besides its docstrings, reads and parameters; indented Markdown.

    Attributes
    ----------
    why
        Why the finding matters.
    save
        How a training job saves what the rule reads.
    missing
        What the rule does about NaN, missing tensors and too few steps.
    remedy
        What to do when it fires: a list.
    limits
        Where the rule is blind or noisy, and the parameter that cures it; "" if nowhere.
    """

    why: str
    save: str
    missing: str
    remedy: str
    limits: str = ""

    def __post_init__(self) -> None:
        """Take the indentation away."""
        for field in fields(self):
            object.__setattr__(self, field.name, inspect.cleandoc(getattr(self, field.name)))
