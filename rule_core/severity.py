"""Severity: how serious a finding is."""

import enum


class Severity(enum.StrEnum):
    """How serious a finding is.

    Attributes
    ----------
    ERROR
        The training is broken: what it computes is worthless from here on.
    WARNING
        Worth a look: the training may be wasting time or quality.
    NOTE
        Evidence only: it never meets a rule's condition.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The position in the order: 0 for a note, 2 for an error."""
        return ("note", "warning", "error").index(self)
