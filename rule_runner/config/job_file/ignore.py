"""Reads the section `ignore` of a job file: findings to mute, each with a reason."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

import msgspec

from rule_core.rules.evidence import Finding
from rule_runner.config.job_file.sections import compiled, listed, texts_of
from rule_runner.errors import JobError, restated

SECTION: Final = "ignore"
FIELDS: Final = ("rule", "tensor", "run", "reason", "until")
_SCOPE: Final = FIELDS[:3]


class Mute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Findings to mute, and why. A field that is not given covers everything.

    Attributes
    ----------
    rule
        Name of the rule job, or of the rule.
    tensor, run
        Regular expressions, found anywhere in the name of the finding's tensor or of the trial.
    until
        The last day on which the entry applies, in UTC.
    """

    reason: str
    rule: str = ""
    tensor: str = ""
    run: str = ""
    until: date | None = None

    @property
    def why(self) -> str:
        """The reason, and the last day if there is one."""
        return (
            self.reason if self.until is None else f"{self.reason.rstrip('.')}, until {self.until}"
        )

    def covers(self, rules: Sequence[str], run: str) -> bool:
        """Return whether the entry concerns a rule with one of these names, on a trial."""
        return (not self.rule or self.rule in rules) and re.search(self.run, run) is not None

    def covers_finding(self, finding: Finding) -> bool:
        """Return whether the entry concerns the tensor of a finding."""
        return not self.tensor or re.search(self.tensor, str(finding.tensor or "")) is not None

    def has_expired(self, today: date) -> bool:
        """Return whether the entry no longer applies."""
        return self.until is not None and self.until < today

    def expiry_note(self, place: str) -> str:
        """Return a sentence that the entry has expired."""
        scope = ", ".join(f"{name} {text!r}" for name in _SCOPE if (text := getattr(self, name)))
        return (
            f"An entry of {SECTION!r} in {place} expired on {self.until} and mutes nothing: "
            f"{scope} ({self.reason.rstrip('.')}). Remove it, or set a later date."
        )


def mutes(section: object, place: str) -> tuple[Mute, ...]:
    """Return the entries of the section; see `Mute`.

    Parameters
    ----------
    section
        The section; None without one.
    place
        The job file, for messages.

    Raises
    ------
    JobError
        If it is not valid, with what to write instead.
    """
    return tuple(
        _mute(entry, f"{SECTION}[{number}] of {place}")
        for number, entry in enumerate(listed(section, f"{SECTION} of {place}"))
    )


def _mute(entry: object, where: str) -> Mute:
    texts = {name: value for name, value in texts_of(entry, FIELDS, where).items() if value}
    if "reason" not in texts:
        raise JobError(f"{where} must have a reason: why its findings are muted.")
    if texts.keys().isdisjoint(_SCOPE):
        raise JobError(
            f"{where} must have a rule, a tensor or a run. Without them it would mute everything."
        )
    for name in ("tensor", "run"):
        compiled(texts.get(name, ""), f"{name} in {where}")
    until = texts.pop("until", None)
    problem = f"until in {where} must be a date such as 2026-12-31, got {until!r:.100}."
    with restated(JobError, ValueError, sentence=problem):
        return Mute(**texts, until=None if until is None else date.fromisoformat(until))
