"""Results as text: a table on a terminal, plain lines elsewhere; control characters are escaped."""

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from rule_core.analysis.axis import number
from rule_core.model.segments import ranges_text, step_text
from rule_runner.errors import counted
from rule_runner.escape import printable
from rule_runner.results.issues.incidents import RunState, in_causal_order, incidents, run_state
from rule_runner.results.schema import summary
from rule_runner.results.status import Outcome, for_people

if TYPE_CHECKING:
    from typing import TextIO

    from rich.console import Console

    from rule_runner.results.acknowledgements import Acknowledgement
    from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult, TrialSummary
    from rule_runner.results.state import Coverage

EVIDENCE_LIMIT: Final = 3
SLOW_S: Final = 5.0  # the time of slower rules is reported
STYLES: Final = {
    "IssuesFound": "bold red",
    "Error": "bold magenta",
    "Stopped": "yellow",
    "NoIssuesFound": "green",
    "NotEvaluated": "bold yellow",
}
FOLDED: Final = (Outcome.NO_ISSUES_FOUND, Outcome.NOT_EVALUATED)
# The outcome that has the color of a state.
STATE_OUTCOMES: Final = {
    RunState.BROKEN: Outcome.ISSUES_FOUND,
    RunState.SUSPICIOUS: Outcome.NOT_EVALUATED,
    RunState.UNKNOWN: Outcome.ERROR,
    RunState.HEALTHY: Outcome.NO_ISSUES_FOUND,
}
_HOLDS: Final = re.compile(r"Trial '.*' holds \d+ (?:steps \(|windows of ).*\.$")
# Repeats the coverage.
_NONE_JUDGED: Final = re.compile(r"Rule '.*?' judged none of \d+ known steps( \(.*?: \d+\))?\. ?")


def verdict(rule: "RuleResult", root: "RuleResult | None" = None) -> str:
    """Return the outcome with its step, its marks, such as ``warning``, and its root cause.

    Parameters
    ----------
    root
        The issue that this one may follow from.
    """
    marks = ["warning"] * (rule.severity == "warning") + ["observed"] * (rule.mode == "observe")
    marks += [*recovery(rule)] + ["muted"] * rule.is_muted
    marks += ["acknowledged"] * rule.is_acknowledged
    marked = f" ({', '.join(marks)})" if marks else ""
    return f"{rule.outcome}{place(rule)}{marked}{abandonment(rule)}{origin(root)}"


def origin(root: "RuleResult | None") -> str:
    """Return which issue another one may follow from, as a clause, or ""."""
    return f", may follow from {printable(root.configuration_name)}" if root else ""


def place(rule: "RuleResult") -> str:
    """Return where the condition was first met, as `` at step 480 of segment 2``, or ""."""
    step = rule.global_step
    return "" if step is None else f" at {rule.unit} {step_text(step)}"


def recovery(found: "RuleResult | Evidence") -> Iterator[str]:
    """Yield since when a condition is no longer met, unless its step was abandoned."""
    if found.recovered_at is not msgspec.UNSET and found.resumed_from is msgspec.UNSET:
        yield "recovered" + f" at step {found.recovered_at}" * (found.recovered_at != found.step)


def abandonment(rule: "RuleResult") -> str:
    """Return that the run later repeated the step of a verdict, as a clause, or ""."""
    if rule.resumed_from is msgspec.UNSET:
        return ""
    return f", in a part of the run that was resumed from step {rule.resumed_from} afterwards"


def judged_steps(steps: "Coverage") -> str:
    """Return the first and the last step judged, of each segment if there are several."""
    if steps.first is None:
        return ""
    if not steps.segments:
        return f"{steps.first} to {steps.last}"
    return ranges_text([(part.first, part.last) for part in steps.segments])


def coverage(rule: "RuleResult") -> str:
    """Return the coverage: how many steps were judged, and why others were skipped."""
    steps = rule.coverage
    where = f" ({judged_steps(steps)})" if steps.first is not None else ""
    slow = f" in {rule.rule_time_s:.1f} s" if rule.rule_time_s >= SLOW_S else ""
    units = f"{rule.unit}s"
    parts = [f"judged {steps.judged} of {steps.known} {units}{where}{slow}"]
    parts += [f"skipped {count}: {reason}" for reason, count in steps.skipped.items()]
    parts += [
        f"{count} {units} without {worker}" for worker, count in steps.missing_workers.items()
    ]
    return printable("; ".join(parts))


def evidence(finding: "Evidence", unit: str = "step", *, advised: bool = True) -> str:
    """Return a finding as a line; its step is the number of a `unit`.

    The line says whether the finding is only a note, muted or acknowledged, and why. It has the
    advice if `advised`.
    """
    aside = "noted: " if finding.severity == "note" else ""
    if finding.muted is not msgspec.UNSET:
        aside = f"muted ({finding.muted.rstrip('.')}): "
    if finding.acknowledgement is not msgspec.UNSET:
        aside = f"{mark(finding.acknowledgement)}: "
    step = f"{unit} {step_text(finding.global_step)}"
    mode = "" if finding.mode is msgspec.UNSET else f" ({finding.mode})"
    abandoned = "" if finding.resumed_from is msgspec.UNSET else " (abandoned)"
    where = [finding.tensor or "", f"of {finding.worker}" if finding.worker else ""]
    numbers = [
        f"measured {_number(finding.measured)}" if finding.measured is not None else "",
        f"limit {_number(finding.limit)}" if finding.limit is not None else "",
    ]
    sentences = finding.sentences if advised else finding.summary
    if not sentences:
        parts = [f"{step}{mode}{abandoned}", " ".join(filter(None, where)), *numbers]
        parts += [finding.note or "", *recovery(finding)]
        return printable(aside + ", ".join(filter(None, parts)))
    parts = ["" if step in sentences else step, f"{mode}{abandoned}".strip(" ()"), *numbers]
    parts += [
        *recovery(finding),
        "" if finding.note == finding.summary else (finding.note or "").rstrip("."),
    ]
    figures = ", ".join(filter(None, parts))
    return printable(f"{aside}{sentences}{figures and f' ({figures})'}")


def mark(said: "Acknowledgement") -> str:
    """Return what was said about a finding: ``muted by ann until 2026-12-01 (known)``."""
    until = f" until {said.until}" if said.until else ""
    return printable(f"{said.kind} by {said.who}{until} ({said.reason.rstrip('.')})")


def asides(rule: "RuleResult", limit: int) -> Iterator[str]:
    """Yield the first notes and muted findings as lines, and how many more there are."""
    listed = rule.asides[:limit]
    yield from (evidence(finding, rule.unit) for finding in listed)
    if more := rule.notes_count + rule.muted_count - len(listed):
        yield f"and {more} more notes or muted findings"


def sentence(rule: "RuleResult") -> str:
    """Return what the main finding of a rule says, or else its numbers; "" without a finding."""
    finding = rule.main_finding
    return (finding.summary or evidence(finding, rule.unit)) if finding else ""


def _findings(rule: "RuleResult") -> Iterator[str]:
    """Yield the first findings as lines; the same advice stands there once."""
    advice: str | msgspec.UnsetType = msgspec.UNSET
    for finding in rule.findings[:EVIDENCE_LIMIT]:
        yield evidence(finding, rule.unit, advised=finding.advice != advice)
        advice = finding.advice


def _number(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def reason(rule: "RuleResult") -> str:
    """Return why there is no verdict, or what failed."""
    return printable(for_people(rule.status_details or rule.outcome))


def lines(result: "EvaluationResult", *, folded: bool = False) -> Iterable[str]:
    """Yield the results as plain text.

    Parameters
    ----------
    folded
        Whether to name the rules without issues, and those that judged nothing, in a line each.
    """
    contents = _shared_contents(result.rules)
    for rule, root in _unfolded(result, folded=folded):
        name = printable(rule.configuration_name)
        of = f" ({printable(rule.rule)})" if rule.rule != rule.configuration_name else ""
        yield f"{name}{of}: {verdict(rule, root)}"
        for line in _below(rule, contents):
            yield f"  {line}"
    yield from _closing(result, contents, folded=folded)


def _unfolded(
    result: "EvaluationResult", *, folded: bool
) -> "list[tuple[RuleResult, RuleResult | None]]":
    """Return the rules to show with their details, each with the issue that it may follow from."""
    rules = in_causal_order(result.rules)
    return [pair for pair in rules if not (folded and pair[0].outcome in FOLDED)]


def _shared_contents(rules: "Iterable[RuleResult]") -> str:
    """Return the sentence on the contents of the trial that several rules share."""
    texts = Counter(match[0] for rule in rules if (match := _HOLDS.search(reason(rule))))
    return next((text for text, count in texts.most_common(1) if count > 1), "")


def _closing(result: "EvaluationResult", contents: str, *, folded: bool) -> Iterable[str]:
    """Yield the lines after the verdicts."""
    for outcome in FOLDED if folded else ():
        rules = [rule for rule in result.rules if rule.outcome == outcome]
        if outcome == Outcome.NOT_EVALUATED and rules:
            silent = counted(len(rules) + len(result.left_out), "rule")
            yield f"{outcome}: {silent}; the report has the reasons."
        elif rules:
            yield f"{outcome}: {', '.join(printable(rule.configuration_name) for rule in rules)}"
            notes = dict.fromkeys(note for rule in rules for note in rule.notes)
            yield from (f"note: {printable(note)}" for note in islice(notes, EVIDENCE_LIMIT))
    if len(result.rules) > 1:
        yield summary(result.rules, result.left_out)
    if contents:
        yield contents
    yield from (f"note: {printable(note)}" for note in result.notes)
    if len(result.rules) > 1:
        state = headline(result.rules, result.trial, result.left_out)
        yield f"{printable(result.trial.name)}: {state}"


def headline(
    rules: "Sequence[RuleResult]",
    trial: "TrialSummary | None" = None,
    left_out: "Collection[str]" = (),
    problem: str = "",
) -> str:
    """Return the state of a run, since when, and how many rules judged it by which inputs.

    Parameters
    ----------
    trial
        What is known of the trial; None says nothing of its inputs.
    left_out
        The names of the rules that were not run.
    problem
        As in `run_state`.
    """
    state = run_state(rules, problem)
    judged = sum(rule.outcome not in {Outcome.NOT_EVALUATED, Outcome.ERROR} for rule in rules)
    if not judged:
        return f"{state}, nothing was judged"
    judging = f"judged by {judged} of {counted(len(rules) + len(left_out), 'rule')}"
    if state in {RunState.BROKEN, RunState.SUSPICIOUS}:
        (root, _), *_ = incidents(rules)
        since = "" if root.since is None else f" since {root.unit} {step_text(root.since)}"
        return f"{state}{since}, {judging}"
    if trial is None:
        return f"{state}, {judging}"
    seen, unseen = map(_listed, (trial.saved, trial.not_saved))
    basis = f" from {seen}" if seen else ""
    return f"{state}, {judging}{basis}" + (f"; {unseen} were not saved" if unseen else "")


def _listed(names: "Sequence[str]") -> str:
    """Return names as a sentence lists them: ``a, b and c``."""
    *names, last = names or [""]
    return f"{', '.join(names)} and {last}" if names else last


def _below(rule: "RuleResult", contents: str) -> Iterable[str]:
    """Yield the lines after a verdict, without the sentence `contents`."""
    yield coverage(rule)
    yield from _findings(rule)
    if rule.findings_count > EVIDENCE_LIMIT:
        yield f"and {rule.findings_count - EVIDENCE_LIMIT} more findings"
    yield from asides(rule, EVIDENCE_LIMIT)
    if rule.status_details and rule.outcome != "IssuesFound":
        text = reason(rule).removesuffix(contents).rstrip()
        details = _NONE_JUDGED.sub("", text, count=1)
        if details or not contents:
            yield details or text
    yield from (
        printable(f"action {action.name} ({action.target}): {action.state}. {action.detail}")
        for action in rule.actions
    )
    notes = [note for note in rule.notes if note not in (rule.status_details or "")]
    yield from (f"note: {printable(note)}" for note in notes[:EVIDENCE_LIMIT])
    if len(notes) > EVIDENCE_LIMIT:
        yield f"and {len(notes) - EVIDENCE_LIMIT} more notes"


def print_table(console: "Console", result: "EvaluationResult", *, folded: bool = False) -> None:
    """Print the results as a table; `folded` as in `lines`."""
    from rich.text import Text

    from rule_runner.report.tables import grid

    contents = _shared_contents(result.rules)

    def row(pair: "tuple[RuleResult, RuleResult | None]") -> "tuple[Text, Text]":
        rule, root = pair
        name = printable(rule.configuration_name)
        judged = Text.assemble(f"{name}\n", (verdict(rule, root), STYLES.get(rule.outcome, "")))
        return judged, Text("\n".join(_below(rule, contents)))

    headings = ("rule and verdict", "coverage and evidence")
    if unfolded := _unfolded(result, folded=folded):
        console.print(grid(headings, map(row, unfolded), show_lines=True))
    for text in _closing(result, contents, folded=folded):
        console.print(Text(text))


def print_results(
    result: "EvaluationResult",
    places: "Sequence[str]",
    stream: "TextIO | None" = None,
    *,
    folded: bool = False,
) -> None:
    """Print results to a stream, by default stdout, followed by the lines `places`.

    `folded` is as in `lines`.
    """
    stream = stream or sys.stdout
    if stream.isatty():
        from rich.console import Console

        console = Console(file=stream)
        print_table(console, result, folded=folded)
        for place in places:
            console.print(place, markup=False, highlight=False, soft_wrap=True)
    else:
        print("\n".join([*lines(result, folded=folded), *places]), file=stream)
