"""Prints results for people: a table on a terminal, plain lines elsewhere; names are harmless."""

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

    from rule_runner.results import EvaluationResult, Evidence, RuleResult

EVIDENCE_SHOWN: Final = 3
SLOW_S: Final = 5.0  # a rule that took longer is told to have
_STYLES: Final = {
    "NoIssuesFound": "green",
    "IssuesFound": "bold red",
    "Error": "bold magenta",
    "NotEvaluated": "bold yellow",
    "Stopped": "yellow",
}


def printable(text: object) -> str:
    r"""Return text without anything that a terminal would obey.

    >>> printable("a\x1b[31mb\n")
    'a\\x1b[31mb\\n'
    """
    return "".join(
        char
        if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
        else char.encode("unicode_escape").decode()
        for char in str(text)
    )


def verdict(rule: "RuleResult") -> str:
    """Return outcome and step in a few words."""
    at = f" at step {rule.step}" if rule.step is not None else ""
    return f"{rule.outcome}{at}"


def coverage(rule: "RuleResult") -> str:
    """Return what was judged, what was not and why."""
    found = rule.coverage
    where = f" ({found.first} to {found.last})" if found.first is not None else ""
    slow = f" in {rule.rule_time_s:.1f} s" if rule.rule_time_s >= SLOW_S else ""
    parts = [f"judged {found.judged} of {found.known} steps{where}{slow}"]
    parts += [f"skipped {count}: {reason}" for reason, count in found.skipped.items()]
    parts += [f"{count} steps without {worker}" for worker, count in found.missing_workers.items()]
    return printable("; ".join(parts))


def evidence(found: "Evidence") -> str:
    """Return one finding as a line."""
    where = [found.tensor or "", f"of {found.worker}" if found.worker else ""]
    what = [
        f"measured {_number(found.measured)}" if found.measured is not None else "",
        f"limit {_number(found.limit)}" if found.limit is not None else "",
        found.note or "",
    ]
    parts = [f"step {found.step}", " ".join(filter(None, where)), *what]
    return printable(", ".join(filter(None, parts)))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def lines(result: "EvaluationResult") -> Iterable[str]:
    """Yield the results as plain text."""
    for rule in result.rules:
        name = printable(rule.configuration_name)
        of = f" ({printable(rule.rule)})" if rule.rule != rule.configuration_name else ""
        yield f"{name}{of}: {verdict(rule)}"
        for text in _below(rule):
            yield f"  {text}"


def _below(rule: "RuleResult") -> Iterable[str]:
    """Yield what stands below a verdict."""
    yield coverage(rule)
    yield from map(evidence, rule.evidence[:EVIDENCE_SHOWN])
    if rule.findings_count > EVIDENCE_SHOWN:
        yield f"and {rule.findings_count - EVIDENCE_SHOWN} more findings"
    if rule.status_details and rule.outcome != "IssuesFound":
        yield printable(rule.status_details.strip())
    shown = [note for note in rule.notes if note not in (rule.status_details or "")]
    yield from (f"note: {printable(note)}" for note in shown[:EVIDENCE_SHOWN])
    if len(shown) > EVIDENCE_SHOWN:
        yield f"and {len(shown) - EVIDENCE_SHOWN} more notes"


def print_table(console: "Console", result: "EvaluationResult") -> None:
    """Print the results as a table."""
    from rich.table import Table  # noqa: PLC0415 - a terminal only
    from rich.text import Text  # noqa: PLC0415

    table = Table(show_lines=True)
    for heading in ("rule", "verdict", "coverage and evidence"):
        table.add_column(heading, overflow="fold")
    for rule in result.rules:
        style = _STYLES.get(rule.outcome, "")
        name = Text(printable(rule.configuration_name))
        table.add_row(name, Text(verdict(rule), style), _joined(_below(rule)))
    console.print(table)


def _joined(texts: Iterable[str]) -> "Text":
    from rich.text import Text  # noqa: PLC0415 - a terminal only

    return Text("\n".join(texts))


def results_at(folders: "Iterable[Path]") -> str:
    """Say where the results lie."""
    return "Results: " + ", ".join(printable(folder) for folder in folders)
