"""Prints results for people: a table on a terminal, plain lines elsewhere; names are harmless."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rule_runner.status import NOT_ENOUGH

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from rule_runner.results import EvaluationResult, Evidence, RuleResult

EVIDENCE_SHOWN: Final = 3
FOLDERS_SHOWN: Final = 3
SLOW_S: Final = 5.0  # a rule that took longer is told to have
_STYLES: Final = {
    "IssuesFound": "bold red",
    "Error": "bold magenta",
    "Stopped": "yellow",
    "NoIssuesFound": "green",
    "NotEvaluated": "bold yellow",
}
_ORDER: Final = {outcome: number for number, outcome in enumerate(_STYLES)}
_HOLDS: Final = re.compile(r"Trial '.*' holds \d+ (?:steps \(|windows of ).*\.$")
# What the coverage says already.
_NONE_JUDGED: Final = re.compile(r"Rule '.*?' judged none of \d+ known steps( \(.*?: \d+\))?\. ?")


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
    """Return outcome and step in a few words, and whether the rule is only observed."""
    at = f" at {rule.unit} {rule.step}" if rule.step is not None else ""
    return f"{rule.outcome}{at}{' (observed)' * (rule.mode == 'observe')}"


def in_order(rules: "Iterable[RuleResult]") -> "list[RuleResult]":
    """Return the results in the order in which people want to know: first what was found."""
    return sorted(rules, key=lambda rule: _ORDER.get(rule.outcome, 0))


def summary(rules: "Iterable[RuleResult]") -> str:
    """Return how many rules came to what, such as ``1 IssuesFound, 2 NoIssuesFound``."""
    counts = Counter(rule.outcome for rule in in_order(rules))
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def coverage(rule: "RuleResult") -> str:
    """Return what was judged, what was not and why."""
    found = rule.coverage
    where = f" ({found.first} to {found.last})" if found.first is not None else ""
    slow = f" in {rule.rule_time_s:.1f} s" if rule.rule_time_s >= SLOW_S else ""
    units = f"{rule.unit}s"
    parts = [f"judged {found.judged} of {found.known} {units}{where}{slow}"]
    parts += [f"skipped {count}: {reason}" for reason, count in found.skipped.items()]
    parts += [
        f"{count} {units} without {worker}" for worker, count in found.missing_workers.items()
    ]
    return printable("; ".join(parts))


def evidence(found: "Evidence", unit: str = "step") -> str:
    """Return one finding as a line; its step is the number of a `unit`."""
    where = [found.tensor or "", f"of {found.worker}" if found.worker else ""]
    what = [
        f"measured {_number(found.measured)}" if found.measured is not None else "",
        f"limit {_number(found.limit)}" if found.limit is not None else "",
        found.note or "",
    ]
    parts = [f"{unit} {found.step}", " ".join(filter(None, where)), *what]
    return printable(", ".join(filter(None, parts)))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def reason(rule: "RuleResult") -> str:
    """Return why there is no verdict, or what failed, as people need it."""
    return printable((rule.status_details or rule.outcome).removeprefix(NOT_ENOUGH).strip())


def lines(result: "EvaluationResult") -> Iterable[str]:
    """Yield the results as plain text."""
    held = _held(result.rules)
    for rule in in_order(result.rules):
        yield from rule_lines(rule, held)
    yield from _closing(result, held)


def rule_lines(rule: "RuleResult", held: str = "") -> Iterable[str]:
    """Yield the result of one rule as plain text, but for what the trial `held`."""
    name = printable(rule.configuration_name)
    of = f" ({printable(rule.rule)})" if rule.rule != rule.configuration_name else ""
    yield f"{name}{of}: {verdict(rule)}"
    for text in _below(rule, held):
        yield f"  {text}"


def _held(rules: "Iterable[RuleResult]") -> str:
    """Return the sentence on what the trial holds that several rules tell, to be told once."""
    told = Counter(found[0] for rule in rules if (found := _HOLDS.search(reason(rule))))
    return next((text for text, count in told.most_common(1) if count > 1), "")


def _closing(result: "EvaluationResult", held: str) -> Iterable[str]:
    """Yield what stands below the verdicts."""
    if len(result.rules) > 1:
        yield summary(result.rules)
    if held:
        yield held
    yield from (f"note: {printable(note)}" for note in result.notes)


def _below(rule: "RuleResult", held: str = "") -> Iterable[str]:
    """Yield what stands below a verdict."""
    yield coverage(rule)
    yield from (evidence(one, rule.unit) for one in rule.evidence[:EVIDENCE_SHOWN])
    if rule.findings_count > EVIDENCE_SHOWN:
        yield f"and {rule.findings_count - EVIDENCE_SHOWN} more findings"
    if rule.status_details and rule.outcome != "IssuesFound":
        text = reason(rule).removesuffix(held).rstrip()
        own = _NONE_JUDGED.sub("", text, count=1)
        if own or not held:
            yield own or text
    yield from (
        printable(f"action {one.name} ({one.target}): {one.state}. {one.detail}")
        for one in rule.actions
    )
    shown = [note for note in rule.notes if note not in (rule.status_details or "")]
    yield from (f"note: {printable(note)}" for note in shown[:EVIDENCE_SHOWN])
    if len(shown) > EVIDENCE_SHOWN:
        yield f"and {len(shown) - EVIDENCE_SHOWN} more notes"


def print_table(console: "Console", result: "EvaluationResult") -> None:
    """Print the results as a table."""
    from rich.table import Table  # noqa: PLC0415 - a terminal only
    from rich.text import Text  # noqa: PLC0415

    held = _held(result.rules)
    table = Table(show_lines=True)
    for heading in ("rule and verdict", "coverage and evidence"):
        table.add_column(heading, overflow="fold")
    for rule in in_order(result.rules):
        name = printable(rule.configuration_name)
        judged = Text.assemble(f"{name}\n", (verdict(rule), _STYLES.get(rule.outcome, "")))
        table.add_row(judged, Text("\n".join(_below(rule, held))))
    console.print(table)
    for text in _closing(result, held):
        console.print(Text(text))


def print_results(result: "EvaluationResult", places: "Sequence[str]") -> None:
    """Print results to stdout, and below them `places`: where to read more."""
    if sys.stdout.isatty():
        from rich.console import Console  # noqa: PLC0415 - a terminal only

        console = Console()
        print_table(console, result)
        for place in places:
            console.print(place, markup=False, highlight=False, soft_wrap=True)
    else:
        print("\n".join([*lines(result), *places]))  # noqa: T201 - stdout carries results


def results_at(folders: "Iterable[Path]") -> str:
    """Say where the results lie; of many folders, where these do."""
    shown = [*folders]
    if len(shown) <= FOLDERS_SHOWN:
        return "Results: " + ", ".join(printable(folder) for folder in shown)
    return f"Results: {printable(shown[0].parent)}, a folder for each rule"
