"""Output folders of evaluations as they lie on disk, for whoever reads them again."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rule_runner.results.file_names import MEASUREMENTS, RESULTS
from rule_runner.results.json_text import dump_json
from rule_runner.results.measurements import (
    MeasurementsFile,
    MeasurementsRecord,
    QuantityRecord,
    SeriesRecord,
)
from rule_runner.results.schema import (
    EvaluationResult,
    Evidence,
    RuleResult,
    summary_of_trial,
)
from rule_runner.results.state import Coverage

MEAN = QuantityRecord("mean", "mean |gradient|", "below", log=True)


def result(
    name: str = "VanishingGradient", outcome: str = "NoIssuesFound", **more: Any
) -> RuleResult:
    """Return the result of a rule job that judged 3 steps of 4."""
    fields = {
        "configuration_name": name,
        "rule": name,
        "status": "Error" if outcome == "NotEvaluated" else outcome,
        "outcome": outcome,
        "status_details": None,
        "step": None,
        "evidence": [],
        "findings_count": len(more.get("evidence", [])),
        "coverage": Coverage(3, {"no gradients": 1}, 4, 0, 20),
        "parameters": {"threshold": 1e-7},
        "trial": "/runs/mine",
        "trial_ended": True,
        "mode": "enforce",
        "started_at": "2026-01-01T00:00:00.000Z",
        "ended_at": "2026-01-01T00:00:01.000Z",
        "duration_s": 1.0,
        "rule_time_s": 0.5,
        "versions": {"rule-runner": "0.1.0"},
        "fingerprint": "0",
        "notes": [],
    }
    return RuleResult(**(fields | more))


def fired(name: str = "VanishingGradient", tensor: str = "gradient/fc", **more: Any) -> RuleResult:
    """Return the result of a rule job that found something at step 20."""
    finding = Evidence(20, tensor, "worker_0", 1e-8, 1e-7, None)
    return result(name, "IssuesFound", step=20, evidence=[finding], **more)


def series(
    measured: Mapping[int, Any],
    limit: Any = 1e-7,
    met: Sequence[int] = (),
    tensor: str | None = "gradient/fc",
    worker: str | None = "worker_0",
    segment: int | msgspec.UnsetType = msgspec.UNSET,
) -> SeriesRecord:
    """Return a series from values by step; `limit` is one, or one for each step."""
    limits = list(limit) if isinstance(limit, list) else [limit] * len(measured)
    values = list(measured.values())
    return SeriesRecord(
        MEAN.name, tensor, worker, list(measured), values, limits, list(met), segment
    )


def measurements(*records: SeriesRecord, left_out: int = 0) -> MeasurementsRecord:
    """Return what is written for series of `MEAN`."""
    return MeasurementsRecord([MEAN], list(records), left_out)


def save(
    folder: Path, one: RuleResult, record: MeasurementsRecord | None = None, **of_trial: Any
) -> Path:
    """Write the files of an evaluation of one rule into `folder`, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, one, **of_trial)
    if record is not None:
        file = MeasurementsFile(rules={one.configuration_name: record})
        (folder / MEASUREMENTS).write_text(dump_json(file))
    return folder


def write(folder: Path, *rules: RuleResult, **of_trial: Any) -> None:
    """Write the results of an evaluation into a folder, which exists."""
    ends = [rule.ended_at for rule in rules if rule.ended_at]
    path = rules[0].trial
    evaluation = EvaluationResult(
        trial=msgspec.structs.replace(
            summary_of_trial(path.rpartition("/")[2], path, rules), **of_trial
        ),
        rules=[*rules],
        ended_at=max(ends) if len(ends) == len(rules) else None,
    )
    (folder / RESULTS).write_text(dump_json(evaluation))
