"""Tables: what the detection suite prints, and writes into its page."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from measuring import COLUMNS, LITERAL, SHIPPED, Verdict, has_literal
from scoring import Score, healthy_findings, macro_f1, scores
from training_runs import Run

HEAD = ("rule", "TP", "FP", "FN", "TN", "precision", "recall", "F1", "delay")


def report(runs: Mapping[str, Run], onsets: Mapping[str, int], verdicts: Sequence[Verdict]) -> str:
    """Return all tables as plain text."""
    parts = []
    for column in COLUMNS:
        found = scores(runs, onsets, verdicts, column)
        parts.append(f"{column}: macro F1 {macro_f1(found):.3f}")
        parts.append(_plain([HEAD, *_rows(found, column)]))
        parts.append(_healthy(runs, verdicts, column))
        for kind in ("false", "missed"):
            parts += [
                _line(kind, one, onsets) for score in found.values() for one in getattr(score, kind)
            ]
    return "\n".join(parts)


def _line(kind: str, one: Verdict, onsets: Mapping[str, int]) -> str:
    return (
        f"{kind:7}{one.rule:28}{one.run:36} step {one.step} (fault at {onsets[one.run]}): "
        f"{one.outcome} {one.reason[:150]}"
    )


def _rows(found: Mapping[str, Score], column: str) -> Iterable[tuple[str, ...]]:
    for rule, score in found.items():
        if column == SHIPPED or has_literal(rule):
            yield (rule, *_cells(score))


def _cells(score: Score) -> tuple[str, ...]:
    counts = (score.found, len(score.false), len(score.missed), score.silent)
    shares = (score.precision, score.recall, score.f1)
    delay = "-" if math.isnan(score.delay) else f"{score.delay:g}"
    return (*map(str, counts), *(f"{one:.2f}" for one in shares), delay)


def _healthy(runs: Mapping[str, Run], verdicts: Sequence[Verdict], column: str) -> str:
    findings, judged = healthy_findings(runs, verdicts, column)
    return f"{len(findings)} findings in {judged} judged pairs of rule and healthy run\n"


def _plain(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def write_markdown(
    page: Path, runs: Mapping[str, Run], onsets: Mapping[str, int], verdicts: Sequence[Verdict]
) -> None:
    """Write the tables of a page anew, between its markers."""
    raise NotImplementedError


_ = LITERAL
