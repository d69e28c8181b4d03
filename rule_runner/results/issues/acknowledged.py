"""The IDs of findings, and results with what people said about them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from rule_core.severity import Severity
from rule_runner.errors import OutputError
from rule_runner.logs import get_logger
from rule_runner.results.acknowledgements import (
    Acknowledgement,
    active,
    mark_of,
    read_acknowledgements,
)
from rule_runner.results.issues.incidents import covered_by
from rule_runner.results.json_text import json_digest
from rule_runner.results.schema import Evidence, RuleResult

_log: Final = get_logger(__name__)
_UNREADABLE: Final = 1000  # files that are remembered as logged


class FindingIds:
    """Gives the findings of one rule job their IDs, the same ones whenever it is judged again.

    Parameters
    ----------
    fingerprint
        `rule_runner.results.schema.fingerprint` of the rule job.
    run_id
        Unique ID of the evaluation; "" gives the same finding the same ID in every evaluation.
    """

    def __init__(self, fingerprint: str, run_id: str = "") -> None:
        self._fingerprint = fingerprint
        self._run_id = run_id
        self._step: int | None = None
        self._ordinals: Counter[tuple[str | None, str | None]] = Counter()
        self._late: Counter[tuple[int, str | None, str | None]] = Counter()

    def next(self, evidence: Evidence) -> str:
        """Return the ID of the next finding.

        Findings come in ascending order of their steps, except for a few of earlier steps, such as
        those that a rule reports at the end of the data.
        """
        step = evidence.global_step
        series = (evidence.tensor, evidence.worker)
        ordinal: int | str
        if self._step is not None and step < self._step:
            self._late[step, *series] += 1
            ordinal = f"late {self._late[step, *series]}"
        else:
            if step != self._step:
                self._step = step
                self._ordinals.clear()
            self._ordinals[series] += 1
            ordinal = self._ordinals[series]
        parts = [self._fingerprint, self._run_id, step, *series, ordinal]
        return json_digest(parts, 16)


def finding_ids(rule: RuleResult) -> list[str]:
    """Return the IDs of the findings of a result, in the order of its evidence.

    They are the same in every evaluation of the rule job, unlike those in ``findings.jsonl``.
    """
    ids = FindingIds(rule.fingerprint)
    return [ids.next(finding) for finding in rule.evidence]


def acknowledged_in(output: str | Path, rules: Iterable[RuleResult]) -> list[RuleResult]:
    """Return the results in an output folder with the acknowledgements there that hold now.

    Parameters
    ----------
    output
        The output folder of the evaluation, or its ``s3://`` address.

    Raises
    ------
    OutputError
        If the acknowledgements cannot be read.
    """
    now = active(read_acknowledgements(output), datetime.now(UTC))
    results = [*rules]
    of_rules = [*chain.from_iterable(_of_rules(entry, results) for entry in now)]
    return [with_acknowledgements(rule, of_rules) for rule in results]


def _of_rules(said: Acknowledgement, rules: Sequence[RuleResult]) -> Iterator[Acknowledgement]:
    """Yield what was said about an incident as said about each of its rule jobs."""
    if said.incident is None:
        yield said
    else:
        yield from (replace(said, rule=name) for name in covered_by(said.incident, rules))


def acknowledged_if_readable(output: str | Path, rules: Iterable[RuleResult]) -> list[RuleResult]:
    """Return results as `acknowledged_in`, or as they are if the acknowledgements are unreadable.

    That is logged: an issue that somebody muted then counts.
    """
    results = [*rules]
    try:
        return acknowledged_in(output, results)
    except OutputError as err:
        log_unreadable(str(err))
        return results


@lru_cache(maxsize=_UNREADABLE)
def log_unreadable(reason: str) -> None:
    """Log why acknowledgements cannot be read, once in a process."""
    _log.warning("acknowledgements_unreadable", reason=reason)


def with_acknowledgements(
    rule: RuleResult, acknowledgements: Sequence[Acknowledgement]
) -> RuleResult:
    """Return a result whose evidence says what people said about it; the verdict stays.

    Muted findings move from the number of findings to that of muted ones, and the severity is that
    of the findings that are left.

    Parameters
    ----------
    acknowledgements
        Those that hold; see `rule_runner.results.acknowledgements.active`.
    """
    if not acknowledgements:
        return rule
    name = rule.configuration_name
    own = mark_of(acknowledgements, name, "")
    marks = [mark_of(acknowledgements, name, number) for number in finding_ids(rule)]
    if own is None and not any(marks):
        return rule
    evidence = [_marked(*pair) for pair in zip(rule.evidence, marks, strict=True)]
    before = sum(finding.counts for finding in rule.evidence)
    after = sum(finding.counts for finding in evidence)
    unlisted = rule.findings_count - before
    is_muted = own is not None and own.is_muted
    muted = rule.findings_count if is_muted else before - after
    severity = rule.severity
    if muted and not (unlisted and not is_muted):
        severity = _severity(evidence)
    return replace(
        rule,
        acknowledgement=msgspec.UNSET if own is None else own,
        evidence=evidence,
        findings_count=rule.findings_count - muted,
        muted_count=rule.muted_count + muted,
        severity=severity,
    )


def _marked(finding: Evidence, mark: Acknowledgement | None) -> Evidence:
    """Return a finding with what was said about it; a mute of the job file stays."""
    if mark is None or not finding.counts:
        return finding
    muted = mark.reason if mark.is_muted else msgspec.UNSET
    return replace(finding, acknowledgement=mark, muted=muted)


def _severity(evidence: Iterable[Evidence]) -> Severity | None:
    """Return the severity of the most serious finding that counts; None without any."""
    counting = (finding.severity for finding in evidence if finding.counts)
    return max(counting, key=lambda severity: severity.rank, default=None)
