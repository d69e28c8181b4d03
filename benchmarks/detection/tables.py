"""Tables: what benchmarks/detection prints, and writes into its page and its results folder."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from known_deviations import KNOWN
from measuring import Measured
from scoring import (
    Interval,
    Is,
    Score,
    by_kind,
    healthy_findings,
    macro_f1_interval,
    scores,
    share_of_accused,
    wrong,
)
from training_runs import KINDS, PARTS, Run

Runs = Mapping[str, Run]
RESULTS: Final = Path(__file__).with_name("results")
HEAD: Final = ("TP", "FP", "FN", "TN", "precision", "recall", "F1", "delay")


def parts_of(runs: Runs, measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Return the measurements of each part that has runs, by its name."""
    parts = {
        part.replace("_", "-"): [each for each in measured if runs[each.run].part == part]
        for part in PARTS
    }
    return {part: of_part for part, of_part in parts.items() if of_part}


def report(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return the tables as plain text."""
    pieces = []
    for part, measured_part in parts_of(runs, measured).items():
        rule_scores = scores(runs, measured_part)
        rows = [(rule, *cells(score)) for rule, score in rule_scores.items()]
        kinds = scores(runs, measured_part, by_kind)
        rows += [(f"[{kind}]", *cells(score)) for kind, score in kinds.items()]
        pieces += [
            _plain([(part, *HEAD), *rows]),
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


class Table(NamedTuple):
    """A table of the page, of a file of results, or of both."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in lines)

    def csv(self) -> str:
        """Return the table as CSV, in which an absent value is empty."""
        file = io.StringIO()
        rows = [["" if cell == "-" else cell for cell in row] for row in self.rows]
        csv.writer(file, lineterminator="\n").writerows([self.head, *rows])
        return file.getvalue()


def summary_table(runs: Runs, measured: Sequence[Measured]) -> Table:
    """Return the figures of each part."""
    rows = []
    for part, measured_part in parts_of(runs, measured).items():
        healthy_count = sum(runs[measurement.run].healthy for measurement in measured_part)
        rows.append(
            [
                part,
                str(healthy_count),
                str(len(measured_part) - healthy_count),
                _accused(runs, measured_part),
                _macro_f1(runs, measured_part),
            ]
        )
    return Table(["part", "healthy runs", "faulty runs", "healthy runs accused", "macro F1"], rows)


def scores_table(runs: Runs, measured: Sequence[Measured]) -> Table:
    """Return the scores by rule and part, and how many runs each rule judged."""
    rows = [
        [
            rule,
            part,
            *cells(score),
            *map(str, (score.faulty_judged, score.healthy_judged, score.notes)),
        ]
        for part, measured_part in parts_of(runs, measured).items()
        for rule, score in scores(runs, measured_part).items()
    ]
    judged = ("faulty runs judged", "healthy runs judged", "runs with a note")
    return Table(["rule", "part", *HEAD, *judged], sorted(rows))


def kinds_table(runs: Runs, measured: Sequence[Measured]) -> Table:
    """Return the scores by part and kind of training, all rules together."""
    rows = []
    for part, measured_part in parts_of(runs, measured).items():
        by_kinds = scores(runs, measured_part, by_kind)
        for kind in KINDS:
            if of_kind := [each for each in measured_part if runs[each.run].kind == kind]:
                accused = _accused(runs, of_kind)
                score = cells(by_kinds[kind])
                rows.append([part, kind.replace("_", " "), str(len(of_kind)), accused, *score])
    return Table(["part", "kind", "runs", "healthy runs accused", *HEAD], rows)


def rules_by_kind_table(runs: Runs, measured: Sequence[Measured]) -> Table:
    """Return the counts by rule and kind of training, both parts together."""
    by_both = scores(runs, measured, lambda run, verdict: f"{verdict.rule} {by_kind(run, verdict)}")
    rows = [
        [*key.replace("_", " ").split(" ", 1), *counts]
        for key, score in by_both.items()
        if any(map(int, counts := cells(score)[:4]))
    ]
    return Table(["rule", "kind", *HEAD[:4]], rows)


def wrong_table(runs: Runs, measured: Sequence[Measured]) -> Table:
    """Return each verdict that is wrong, with its reason."""
    rows = [
        [
            verdict.rule,
            verdict.run,
            runs[verdict.run].part.replace("_", "-"),
            kind.value,
            verdict.severity or "-",
            "-" if verdict.step is None else str(verdict.step),
            KNOWN.get((verdict.rule, verdict.run), "unexplained"),
        ]
        for kind, verdict in wrong(runs, measured)
    ]
    return Table(["rule", "run", "part", "verdict", "severity", "step", "why"], rows)


def runs_table(runs: Runs) -> Table:
    """Return all runs, which need no measuring."""
    ordered = sorted(
        runs.values(), key=lambda run: (PARTS.index(run.part), not run.healthy, run.name)
    )
    rows = [
        [
            run.name,
            run.part.replace("_", "-"),
            run.kind.replace("_", " "),
            run.text,
            run.fault or "healthy",
            ", ".join(sorted(run.fires)),
        ]
        for run in ordered
    ]
    head = ["run", "part", "kind", "description", "fault", "rules that must find it"]
    return Table(head, rows)


def filled(page: str, tables: Mapping[str, Table]) -> str:
    """Return a page with tables between its markers ``<!-- name -->`` and ``<!-- /name -->``."""
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        between = re.findall(f"{begin}(.*?){end}", page, re.DOTALL)
        if len(between) != 1:
            msg = f"A page must have one place for the table {name!r}, got {len(between)}."
            raise ValueError(msg)
        page = page.replace(f"{begin}{between[0]}{end}", f"{begin}\n{table.markdown()}\n\n{end}")
    return page


def write_results(page: Path, summary: Mapping[str, Table], tables: Mapping[str, Table]) -> None:
    """Rewrite the summary tables of a page, and the files with all tables."""
    page.write_text(filled(page.read_text("utf-8"), summary), "utf-8")
    for name, table in tables.items():
        (RESULTS / f"{name}.csv").write_text(table.csv(), "utf-8")


def write_page(page: Path, runs: Runs, measured: Sequence[Measured]) -> None:
    """Write the results of all trainings."""
    kinds = kinds_table(runs, measured)
    columns = [*range(4), kinds.head.index("F1")]
    shortened = [[row[column] for column in columns] for row in (kinds.head, *kinds.rows)]
    write_results(
        page,
        {"summary": summary_table(runs, measured), "kinds": Table(shortened[0], shortened[1:])},
        {
            "runs": runs_table(runs),
            "scores": scores_table(runs, measured),
            "kinds": kinds,
            "rules_by_kind": rules_by_kind_table(runs, measured),
            "wrong": wrong_table(runs, measured),
        },
    )
