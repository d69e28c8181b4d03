"""Tables: what benchmarks/detection prints and writes into its page."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from known_deviations import KNOWN
from measuring import Measured
from scoring import (
    Interval,
    Is,
    Score,
    by_kind,
    healthy_findings,
    macro_f1,
    macro_f1_interval,
    scores,
    share_of_accused,
    wrong,
)
from training_runs import HELD_OUT, KINDS, PARTS, TUNED, Run

Runs = Mapping[str, Run]
HEAD = ("TP", "FP", "FN", "TN", "precision", "recall", "F1", "delay")


def parts_of(runs: Runs, measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Return the measurements of each part that has runs, by the words before its headings."""
    parts = {
        "" if part == TUNED else "held-out ": [
            each for each in measured if runs[each.run].part == part
        ]
        for part in PARTS
    }
    return {words: of_part for words, of_part in parts.items() if of_part}


def report(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return the tables as plain text."""
    pieces = []
    for words, measured_part in parts_of(runs, measured).items():
        rule_scores = scores(runs, measured_part)
        rows = [(rule, *cells(score)) for rule, score in rule_scores.items()]
        kinds = scores(runs, measured_part, by_kind)
        rows += [(f"[{kind}]", *cells(score)) for kind, score in kinds.items()]
        pieces += [
            _plain([(words.strip() or TUNED, *HEAD), *rows]),
            _headline(runs, measured_part),
            "",
        ]
        pieces += [
            f"{kind.value:7}{verdict.rule:28}{verdict.run:36}"
            f"step {verdict.step} {verdict.severity}: {verdict.reason[:200]}"
            for kind, verdict in wrong(runs, measured_part)
        ]
    return "\n".join(pieces)


def _headline(runs: Runs, measured: Sequence[Measured]) -> str:
    share, f1 = _accused(runs, measured), _macro_f1(runs, measured)
    return f"healthy runs with an error or warning: {share}; macro F1: {f1}"


def _accused(runs: Runs, measured: Sequence[Measured]) -> str:
    findings = healthy_findings(runs, measured)
    if not findings or not scores(runs, measured):
        return "-"
    share = share_of_accused(findings)
    accused = sum(map(bool, findings.values()))
    return f"{accused} of {len(findings)} = {_interval(share, '.1%')}"


def _macro_f1(runs: Runs, measured: Sequence[Measured]) -> str:
    if not scores(runs, measured):
        return "-"
    return _interval(macro_f1_interval(runs, measured), ".3f")


def _interval(interval: Interval, form: str) -> str:
    value, low, high = (format(number, form) for number in interval)
    return f"{value} ({low} to {high})"


def cells(score: Score) -> tuple[str, ...]:
    """Return the cells after a rule's name."""
    kinds = (Is.FOUND, Is.FALSE, Is.MISSED, Is.SILENT)
    shares = (score.precision, score.recall, score.f1)
    return (
        *(str(score.counts[kind]) for kind in kinds),
        *("-" if math.isnan(share) else f"{share:.2f}" for share in shares),
        "-" if math.isnan(score.delay) else f"{score.delay:g}",
    )


def _plain(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def summary_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return the figures of each part."""
    rows = []
    for words, measured_part in parts_of(runs, measured).items():
        healthy_count = sum(runs[measurement.run].healthy for measurement in measured_part)
        rows.append(
            [
                words.strip() or TUNED,
                str(healthy_count),
                str(len(measured_part) - healthy_count),
                _accused(runs, measured_part),
                _macro_f1(runs, measured_part),
            ]
        )
    head = ("part", "healthy runs", "faulty runs", "healthy runs accused", "macro F1")
    return markdown(head, rows)


def scores_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return the scores by rule, the parts beside each other."""
    parts = {words: scores(runs, part) for words, part in parts_of(runs, measured).items()}
    rows = [
        [
            f"[{rule}](rules/{rule}.md)",
            *(cell for part in parts.values() for cell in cells(part.get(rule, Score()))),
        ]
        for rule in _rules(parts)
    ]
    f1 = HEAD.index("F1")
    means = (
        [*[""] * f1, f"**{macro_f1(part):.3f}**", *[""] * (len(HEAD) - f1 - 1)]
        for part in parts.values()
    )
    rows.append(["**macro F1**", *chain.from_iterable(means)])
    return markdown(["rule", *_headings(parts, HEAD)], rows)


def judged_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return how many runs each rule judged, and in how many it left a note."""
    parts = {words: scores(runs, part) for words, part in parts_of(runs, measured).items()}
    rows = [
        [
            rule,
            *(
                str(number)
                for part in parts.values()
                for score in [part.get(rule, Score())]
                for number in (score.faulty_judged, score.healthy_judged, score.notes)
            ),
        ]
        for rule in _rules(parts)
    ]
    return markdown(["rule", *_headings(parts, ("faulty", "healthy", "with a note"))], rows)


def _rules(parts: Mapping[str, Mapping[str, Score]]) -> list[str]:
    return sorted({rule for rule_scores in parts.values() for rule in rule_scores})


def _headings(parts: Iterable[str], titles: Sequence[str]) -> list[str]:
    return [f"{words}{title}" for words in parts for title in titles]


def kinds_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return the scores by kind of training, all rules together."""
    rows = []
    for words, measured_part in parts_of(runs, measured).items():
        by_kinds = scores(runs, measured_part, by_kind)
        for kind in KINDS:
            of_kind = [each for each in measured_part if runs[each.run].kind == kind]
            if of_kind:
                score = cells(by_kinds[kind])
                accused = _accused(runs, of_kind)
                rows.append(
                    [
                        *(words.strip() or TUNED, kind.replace("_", " "), str(len(of_kind))),
                        accused,
                        *score,
                    ]
                )
    return markdown(["part", "kind", "runs", "healthy runs accused", *HEAD], rows)


def rules_by_kind_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return true positives, false positives, false negatives, true negatives by rule and kind."""
    by_both = scores(runs, measured, lambda run, verdict: f"{verdict.rule} {by_kind(run, verdict)}")
    rules = sorted({key.split()[0] for key in by_both})
    rows = [
        [rule, *(_counts(by_both.get(f"{rule} {kind}", Score())) for kind in KINDS)]
        for rule in rules
    ]
    return markdown(["rule", *(kind.replace("_", " ") for kind in KINDS)], rows)


def _counts(score: Score) -> str:
    counts = cells(score)[:4]
    return "/".join(counts) if any(map(int, counts)) else ""


def wrong_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return each verdict that is wrong, with its reason."""
    rows = [
        [
            verdict.rule,
            f"`{verdict.run}`",
            runs[verdict.run].part.replace("_", "-"),
            kind.value,
            verdict.severity or "-",
            "-" if verdict.step is None else str(verdict.step),
            KNOWN.get((verdict.rule, verdict.run), "**unexplained**"),
        ]
        for kind, verdict in wrong(runs, measured)
    ]
    return markdown(["rule", "run", "part", "verdict", "severity", "step", "why"], rows)


def runs_table(runs: Runs, part: str) -> str:
    """Return the runs of a part."""
    rows = []
    of_part = [run for run in runs.values() if run.part == part]
    for run in sorted(of_part, key=lambda run: (not run.healthy, run.name)):
        fires = ", ".join(sorted(run.fires))
        kind = run.kind.replace("_", " ")
        rows.append([f"`{run.name}`", kind, run.text, run.fault or "healthy", fires])
    return markdown(["run", "kind", "description", "fault", "rules that must find it"], rows)


def runs_tables(runs: Runs) -> dict[str, str]:
    """Return the tables of the runs, which need no measuring."""
    return {"runs": runs_table(runs, TUNED), "held-out runs": runs_table(runs, HELD_OUT)}


def filled(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with tables between its markers ``<!-- name -->`` and ``<!-- /name -->``."""
    for name, table in tables.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page, count = between.subn(
            lambda match, new=table: f"{match[1]}\n{new}\n\n{match[2]}", page
        )
        if count != 1:
            msg = f"A page must have one place for the table {name!r}, got {count}."
            raise ValueError(msg)
    return page


def write_page(page: Path, runs: Runs, measured: Sequence[Measured]) -> None:
    """Rewrite the tables of a page."""
    measured_tables = (
        ("summary", summary_table),
        ("scores", scores_table),
        ("judged", judged_table),
        ("kinds", kinds_table),
        ("rules by kind", rules_by_kind_table),
        ("wrong", wrong_table),
    )
    tables = {name: table(runs, measured) for name, table in measured_tables} | runs_tables(runs)
    page.write_text(filled(page.read_text("utf-8"), tables), "utf-8")
