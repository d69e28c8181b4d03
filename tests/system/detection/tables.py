"""Tables: what the detection suite prints, and writes into its page."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from known_deviations import KNOWN
from measuring import COLUMNS, SHIPPED, Measured, has_literal
from scoring import Is, Score, healthy_pairs, macro_f1, scores, wrong
from training_runs import Run

Runs = Mapping[str, Run]
HEAD = ("rule", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "delay")


def report(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return all tables as plain text."""
    parts = []
    for column in COLUMNS:
        found = scores(runs, measured, column)
        findings, judged = healthy_pairs(runs, measured, column)
        parts += [
            f"{column}: macro F1 {macro_f1(found):.3f}",
            _plain([HEAD, *((rule, *cells(score)) for rule, score in found.items())]),
            f"{len(findings)} findings in {judged} judged pairs of rule and healthy run\n",
        ]
        parts += [
            f"{kind.value:7}{one.rule:28}{one.run:36} step {one.step}: {one.reason[:200]}"
            for kind, one in wrong(runs, measured, column)
        ]
    return "\n".join(parts)


def cells(score: Score) -> tuple[str, ...]:
    """Return what stands behind a rule's name."""
    kinds = (Is.FOUND, Is.FALSE, Is.MISSED, Is.SILENT)
    shares = (score.precision, score.recall, score.f1)
    return (
        *(str(score.counts[kind]) for kind in kinds),
        *("-" if math.isnan(one) else f"{one:.2f}" for one in shares),
        "-" if math.isnan(score.delay) else f"{score.delay:g}",
    )


def _plain(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def scores_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return the scores by rule, as shipped and literal beside each other."""
    shipped, literal = (scores(runs, measured, column) for column in COLUMNS)
    rows = [
        [f"[{rule}](rules/{rule}.md)", *cells(score), *_beside(rule, literal)]
        for rule, score in shipped.items()
    ]
    mean = ["**macro F1**", *[""] * 6, f"**{macro_f1(shipped):.3f}**", ""]
    both = {rule: literal.get(rule, score) for rule, score in shipped.items()}
    rows.append([*mean, *[""] * 3, f"**{macro_f1(both):.3f}**", ""])
    head = [*HEAD, *(f"literal {one}" for one in ("FP", "FN", "TN", "F1", "delay"))]
    return markdown(head, rows)


def _beside(rule: str, literal: Mapping[str, Score]) -> list[str]:
    if not has_literal(rule):
        return ["same", *[""] * 4]
    found = cells(literal[rule])
    return [found[at] for at in (1, 2, 3, 6, 7)]


def healthy_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return how many findings there are on healthy runs."""
    rows = []
    for column in COLUMNS:
        findings, judged = healthy_pairs(runs, measured, column)
        text = "as shipped" if column == SHIPPED else "literal, rules that have it"
        rows.append([text, str(len(findings)), str(judged), f"{len(findings) / judged:.1%}"])
    return markdown(["column", "findings", "judged pairs", "share"], rows)


def wrong_table(runs: Runs, measured: Sequence[Measured]) -> str:
    """Return each verdict that is wrong as shipped, with its reason."""
    rows = [
        [
            one.rule,
            f"`{one.run}`",
            kind.value,
            "-" if one.step is None else str(one.step),
            KNOWN.get((one.rule, one.run), "**unexplained**"),
        ]
        for kind, one in wrong(runs, measured, SHIPPED)
    ]
    return markdown(["rule", "run", "verdict", "step", "why"], rows)


def runs_table(runs: Runs) -> str:
    """Return what the runs are."""
    rows = []
    for run in sorted(runs.values(), key=lambda one: (not one.healthy, one.name)):
        fires = ", ".join(sorted(run.fires))
        rows.append([f"`{run.name}`", run.text, run.fault or "healthy", fires])
    return markdown(["run", "what it is", "fault", "rules that must find it"], rows)


def filled(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with tables between its markers ``<!-- name -->`` and ``<!-- /name -->``."""
    for name, table in tables.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page, count = between.subn(lambda at, new=table: f"{at[1]}\n{new}\n\n{at[2]}", page)
        if count != 1:
            msg = f"A page must have one place for the table {name!r}, got {count}."
            raise ValueError(msg)
    return page


def write_page(page: Path, runs: Runs, measured: Sequence[Measured]) -> None:
    """Rewrite the tables of a page."""
    tables = {
        "scores": scores_table(runs, measured),
        "healthy": healthy_table(runs, measured),
        "wrong": wrong_table(runs, measured),
        "runs": runs_table(runs),
    }
    page.write_text(filled(page.read_text("utf-8"), tables), "utf-8")
