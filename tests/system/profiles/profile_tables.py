"""Tables: what `benchmarks/detection --profiles` prints and writes."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from known_profile_deviations import KNOWN_PROFILES
from measuring import Measured, Verdict
from profile_jobs import GENERATED, HOST_RECORDED, RECORDED
from scoring import Is, Score, healthy_findings, scores, share_of_accused, wilson, wrong
from tables import Table, cells, write_results
from training_runs import Run

Jobs = Mapping[str, Run]
LABELS: Final = {RECORDED: RECORDED, GENERATED: GENERATED, HOST_RECORDED: GENERATED}
COUNTED: Final = (Is.FOUND, Is.FALSE, Is.MISSED, Is.SILENT)


def by_rule_and_label(job: Run, verdict: Verdict) -> str:
    """Return the key of a score for each rule and label."""
    return f"{verdict.rule} {LABELS[job.kind]}"


def share(part: int, whole: int) -> str:
    """Return a share with its 95 % interval, or a dash."""
    if not whole:
        return "-"
    value, low, high = wilson(part, whole)
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def score_cells(score: Score) -> list[str]:
    """Return the counts, the precision and the recall."""
    found, false, missed, _ = (score.counts[kind] for kind in COUNTED)
    shares = share(found, found + false), share(found, found + missed)
    return [*(str(score.counts[kind]) for kind in COUNTED), *shares]


def scores_table(jobs: Jobs, measured: Sequence[Measured]) -> Table:
    """Return the scores by rule and label; rows of jobs that a rule cannot judge are left out."""
    rows = []
    for key, score in scores(jobs, measured, by_rule_and_label).items():
        rule, label = key.split()
        if any(score.counts[kind] for kind in COUNTED):
            rows.append([rule, label, *score_cells(score)])
    total = scores(jobs, measured, lambda *_: "all").get("all", Score())
    rows.append(["all", "", *score_cells(total)])
    return Table(["rule", "kind", "TP", "FP", "FN", "TN", "precision", "recall"], rows)


def summary_table(jobs: Jobs, measured: Sequence[Measured]) -> Table:
    """Return the numbers of jobs, and how many healthy ones are accused, by kind."""
    rows = []
    for label in (RECORDED, GENERATED):
        of_label = [each for each in measured if LABELS[jobs[each.run].kind] == label]
        findings = healthy_findings(jobs, of_label)
        accused = sum(map(bool, findings.values()))
        value, low, high = share_of_accused(findings)
        rows.append(
            [
                label,
                str(len(findings)),
                str(len(of_label) - len(findings)),
                f"{accused} of {len(findings)} = {value:.1%} ({low:.1%} to {high:.1%})",
            ]
        )
    return Table(["kind", "healthy jobs", "jobs with a fault", "healthy jobs accused"], rows)


def wrong_table(jobs: Jobs, measured: Sequence[Measured]) -> Table:
    """Return each verdict that is wrong, with its reason."""
    rows = [
        [
            verdict.rule,
            verdict.run,
            kind.value,
            KNOWN_PROFILES.get((verdict.rule, verdict.run), "unexplained"),
        ]
        for kind, verdict in wrong(jobs, measured)
    ]
    return Table(["rule", "job", "verdict", "why"], rows)


def jobs_table(jobs: Jobs) -> Table:
    """Return the jobs."""
    ordered = sorted(jobs.values(), key=lambda job: (not job.healthy, job.kind, job.name))
    rows = [
        [
            job.name,
            job.kind,
            job.text,
            ", ".join(sorted(job.fires)) or "healthy",
        ]
        for job in ordered
    ]
    return Table(["job", "kind", "description", "rules that must find its fault"], rows)


def report(jobs: Jobs, measured: Sequence[Measured]) -> str:
    """Return scores and wrong verdicts as plain text."""
    lines = [
        f"{rule:24}{'  '.join(cells(score))}"
        for rule, score in scores(jobs, measured).items()
        if not (math.isnan(score.precision) and math.isnan(score.recall))
    ]
    lines += [
        f"{kind.value:8}{verdict.rule:24}{verdict.run:40}{verdict.reason}"
        for kind, verdict in wrong(jobs, measured)
    ]
    return "\n".join(lines)


def write_page(page: Path, jobs: Jobs, measured: Sequence[Measured]) -> None:
    """Write the results of all profiles."""
    tables = {
        "profile_jobs": jobs_table(jobs),
        "profile_scores": scores_table(jobs, measured),
        "wrong_profiles": wrong_table(jobs, measured),
    }
    write_results(page, {"profile summary": summary_table(jobs, measured)}, tables)
