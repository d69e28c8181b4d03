"""Count how many labelled outputs of trainings are read: `reach.py FOLDER [--any-steps]`.

Each case is a folder ``HALF/KIND/CASE`` with the files in ``run/`` and the answer in
``expected.json``: of ``train``, ``eval`` and ``key`` (null, or ``name``, ``values``, ``first``,
``last`` and ``steps_also``), the number of ``segments``, and ``refuse`` for what is no training.
`outputs.csv` has the origins and the labels; the files themselves belong to others. With
``--any-steps`` the values must be right in number and order, however they are counted.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rule_core.model.segments import step_in_segment
from rule_core.sources.open import open_sources
from rule_core.sources.recognize import SourceRun, recognize, source_folder
from rule_core.storage.base import TrialStore, list_folder
from rule_core.storage.local import LocalStore

Series = list[tuple[int, float]]
EVALUATION = "EVAL"


def runs_below(store: TrialStore, key: str = "") -> Iterator[SourceRun]:
    """Yield the runs in a folder and below it."""
    recognition = recognize(source_folder(store, key))
    yield from recognition.runs
    for name in sorted(list_folder(store, key)):
        if name.endswith("/") and name not in recognition.owned:
            yield from runs_below(store, key + name)


def read(store: TrialStore, run: SourceRun) -> tuple[list[tuple[str, Series]], int]:
    """Return the mode and the points of each series of a run, and the number of segments."""
    index = open_sources(store, run.sources)
    index.refresh()
    index.finish()
    series: list[tuple[str, Series]] = []
    for name, steps in index.names.items():
        by_mode: dict[str, Series] = {}
        for step in steps:
            for part, file in index.files[step].items():
                if name not in file.entries:
                    continue
                points = by_mode.setdefault(file.mode.name, [])
                with suppress(ValueError):  # histograms have no value of their own
                    value = float(index.tensors.value(name, step, part)[0])
                    points.append((step_in_segment(step), value))
        series += by_mode.items()
    return series, max(1, len(index.segments))


def is_read(answer: Mapping[str, Any], mode: str, points: Series, *, any_steps: bool) -> bool:
    """Return whether a series has the values, the steps and the mode of an answer."""
    values = [float(value) for value in answer["values"]]
    ends = [(answer["first"][0], answer["last"][0]), *map(tuple, answer.get("steps_also") or ())]
    return (
        len(points) == len(values)
        and (any_steps or (points[0][0], points[-1][0]) in ends)
        and (mode == EVALUATION) == (answer["mode"] == EVALUATION)
        and all(
            math.isclose(value, expected, rel_tol=1e-5) or value != value  # noqa: PLR0124 - NaN
            for (_, value), expected in zip(points, values, strict=True)
        )
    )


def judged(case: Path, *, any_steps: bool) -> str:
    """Return how much of a case is read: full, part, no, refused or accepted."""
    matches = partial(is_read, any_steps=any_steps)
    expected = json.loads((case / "expected.json").read_text())
    store = LocalStore(case / "run")
    runs = [read(store, run) for run in runs_below(store)]
    series = [item for run_series, _ in runs for item in run_series]
    if expected.get("refuse"):
        return "accepted" if series else "refused"
    answers: Sequence[Mapping[str, Any]] = [
        {**expected[what], "mode": mode}
        for what, mode in (("train", "TRAIN"), ("eval", EVALUATION))
        if expected.get(what)
    ]
    found = [any(matches(answer, *item) for item in series) for answer in answers]
    if key := expected.get("key"):
        found.append(any(matches({**key, "mode": mode}, mode, points) for mode, points in series))
    has_segments = max((segments for _, segments in runs), default=1) == expected["segments"]
    return "full" if all(found) and has_segments else "part" if any(found) else "no"


def main() -> None:
    """Print the counts of each half, and each case that is not read fully."""
    root = Path(sys.argv[1])
    counts: dict[str, Counter[str]] = {}
    for answer in sorted(root.rglob("expected.json")):
        case = answer.parent
        outcome = judged(case, any_steps="--any-steps" in sys.argv)
        half = case.relative_to(root).parts[0]
        counts.setdefault(half, Counter())[outcome] += 1
        if outcome not in {"full", "refused"}:
            print(f"{outcome:9}{case.relative_to(root)}")
    for half, outcomes in counts.items():
        print(half, dict(outcomes))


if __name__ == "__main__":
    main()
