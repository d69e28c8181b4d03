"""Golden values of other projects: lists of values by step, as their tests keep them."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from builtin_rules.statistics.baselines.baseline_file import make_baseline
from builtin_rules.statistics.baselines.differences import differences
from rule_core.exceptions import SMDebugValueError
from rule_core.sources.options import DEFAULT
from rule_core.trials.trial import Trial
from rule_runner.loading.trials import read_trial

Series = dict[str, dict[int, float]]
_NAMES: Final = {"lm loss": "loss", "iteration-time": "step_time", "num-zeros": "num_zeros"}
_PAIR: Final = re.compile(r"^\s*(\d+)\s+([-+.\deE]+|nan|inf)\s*$")


def print_golden(folder: Path) -> None:
    """Compare each golden file with the others of its folder, as if each were a run.

    Files of one folder are versions or environments of one test. Read are JSON of Megatron-LM (a
    metric with ``values`` by step, or with ``start_step``, ``step_interval`` and a list of
    ``values``) and texts of torchtitan (a step and a loss in each line).
    """
    print("folder | baseline of | judged | what differs")
    for below in sorted({path.parent for path in folder.rglob("*") if path.is_file()}):
        with TemporaryDirectory() as scratch:
            runs = [*_runs(below, Path(scratch))]
            for judged in runs if len(runs) > 1 else ():
                good = [run for run in runs if run is not judged]
                place = f"{below.relative_to(folder)} | {len(good)} | {judged.name}"
                print(f"{place} | {_compared(good, judged)}")


def _compared(good: Sequence[Trial], judged: Trial) -> str:
    """Return what differs from good runs, or why they are no baseline."""
    try:
        baseline = make_baseline(good)
    except SMDebugValueError as err:
        return f"no baseline: {err}"
    found = [
        f"{each.metric or 'run'} {each.quantity} ({each.note})"
        for each in differences(baseline, judged)
        if each.is_outside and not each.is_better
    ]
    return "; ".join(found) or "nothing"


def _runs(folder: Path, scratch: Path) -> Iterator[Trial]:
    """Yield the golden files of a folder as trials."""
    for path in sorted(folder.iterdir()):
        series = _series(path) if path.is_file() else {}
        if not series:
            continue
        rows: dict[int, dict[str, float]] = {}
        for name, values in series.items():
            for step, value in values.items():
                rows.setdefault(step, {"step": step})[_NAMES.get(name, name)] = value
        run = scratch / path.stem
        run.mkdir()
        lines = [json.dumps(rows[step]) for step in sorted(rows)]
        (run / "metrics.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        yield read_trial(str(run), DEFAULT)[0]


def _series(path: Path) -> Series:
    """Return the values of a golden file by metric and step; {} if it is none."""
    content = path.read_text("utf-8", "replace")
    if path.suffix == ".json":
        try:
            document = json.loads(content)
        except ValueError:
            return {}
        items = document.items() if isinstance(document, dict) else ()
        return {name: values for name, metric in items if (values := _values(metric))}
    pairs = [match for line in content.splitlines() if (match := _PAIR.match(line))]
    return (
        {"loss": {int(step): float(value) for step, value in (each.groups() for each in pairs)}}
        if pairs
        else {}
    )


def _values(metric: Any) -> dict[int, float]:
    values = metric.get("values") if isinstance(metric, dict) else None
    if isinstance(values, list):
        start, interval = metric.get("start_step", 0), metric.get("step_interval", 1)
        values = {start + interval * position: value for position, value in enumerate(values)}
    if not isinstance(values, dict):
        return {}
    return {int(step): float(value) for step, value in values.items() if _is_number(value)}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
