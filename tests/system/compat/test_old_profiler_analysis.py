"""Readers, frames and analysis of profiler data answer as smdebug 1.0.34 does, but for its faults.

Its faults are named in the tests of the modules. Here it is asked what it can answer: one node
where it mixes up several, times after which there is one more, events that lie within steps.
"""

import json
import math
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from profiled_job import each_second, write_job
from profiler_answers import END_US, START_US, answers
from profiler_writer import write_samples
from recorded import shared_folder
from timeline_writer import MODEL, Event, step, write
from timeline_writer import START_US as JOB_US

PYTHON = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON")
SCRIPT = Path(__file__).parents[1] / "old_library" / "ask_profiler.py"
REAL = shared_folder() / "profiler"
pytestmark = [
    pytest.mark.old_library,
    pytest.mark.skipif(
        PYTHON is None,
        reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
    ),
]


def write_random_job(root: Path) -> Path:
    """Write a job of random steps, with events of all kinds of args within them."""
    rng = random.Random(13)
    counts = dict.fromkeys(("TRAIN", "EVAL", "GLOBAL"), 0)
    events, model = [], []
    ts = 3_000_000
    for at in range(30):
        mode = "TRAIN" if at == 0 else rng.choice(list(counts))
        length = rng.randint(100_000, 2_000_000)
        events.append(step(counts[mode], ts, length, mode))
        for _ in range(rng.randint(0, 6)):
            begin = ts + rng.randint(1, length // 2)
            name = rng.choice(["Forward", "x::DataLoaderIter::GetNext", "aten::mm"])
            args: dict[str, Any] = {"pid": rng.randint(1, 3), "worker_id": rng.randint(0, 3)}
            args |= rng.choice([{}, {"layer_name": "conv"}, {"name": "n", "bytes_fetched": 7}])
            args |= rng.choice([{}, {"step_num": counts[mode]}, {"pin_memory": False}])
            found = Event(
                f"phase {rng.randint(0, 2)}", name, begin, rng.randint(0, length // 3), args
            )
            rng.choice([events, model]).append(found)
        counts[mode] += 1
        ts += length + rng.randint(2, 900_000)
    write(root, events)
    write(root, model, kind=MODEL)
    write_samples(root, *each_second([rng.randint(0, 99) for _ in range(120)]))
    return root


def asked_of(root: Path) -> dict[str, list[Any]]:
    """Return what is asked, of jobs written here and of real ones if there are any."""
    one, two = (str(write_job(root / str(nodes), nodes=nodes)) for nodes in (1, 2))
    drawn = str(write_random_job(root / "drawn"))
    asked: dict[str, list[Any]] = {
        "readers": [one, two, drawn],
        "frames": [
            *((one, JOB_US, JOB_US + 50_000_000), (two, JOB_US + 7, JOB_US + 9_000_000)),
            (drawn, JOB_US + 5_000_000, JOB_US + 31_000_000),
        ],
        "whole": [(one, 1), (two, 2), (drawn, 1)],
    }
    for name in ("test_traces", "merge_traces", "model_timeline_traces", "horovod_timeline_traces"):
        path = REAL / name
        if path.exists():
            stamps = [int(one.name.split("_")[0]) for one in (path / "framework").rglob("*.json")]
            asked["readers"].append(str(path))
            asked["frames"].append((str(path), min(stamps) - 10**9, max(stamps)))
    assert START_US < JOB_US < END_US
    return asked


def differences(theirs: Any, ours: Any, at: str = "") -> list[str]:
    """Return where answers differ; numbers may in their last digits."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        parts = [(theirs[key], ours[key], f"{at}/{key}") for key in theirs]
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        parts = [(*pair, f"{at}[{n}]") for n, pair in enumerate(zip(theirs, ours, strict=True))]
    elif isinstance(theirs, float) and isinstance(ours, float):
        return [] if math.isclose(theirs, ours, rel_tol=1e-12) else [f"{at}: {theirs} != {ours}"]
    else:
        return [] if theirs == ours else [f"{at}: {theirs!r:.200} != {ours!r:.200}"]
    return [one for part in parts for one in differences(*part)]


def test_answers_about_profiler_data(tmp_path: Path) -> None:
    asked = asked_of(tmp_path)
    done = subprocess.run(
        [str(PYTHON), "-W", "ignore", str(SCRIPT), json.dumps(asked)],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = json.loads(json.dumps(answers(asked)))
    assert differences(theirs, ours) == []
    assert len(theirs["analysis " + asked["whole"][0][0]]["phases"][0]["rows"]) == 5
