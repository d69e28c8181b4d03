"""Random trees of Python profiles get the answers of smdebug 1.0.34, but for its known faults."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from python_profile_answers import answers
from python_profile_writer import (
    AFTER_STEPS,
    BEFORE_STEPS,
    BEGAN_US,
    span,
    table,
    write_pyinstrument,
    write_table,
)

from rule_core.profiler.python_profiles import reader as python_profiles
from rule_core.storage.local import LocalStore
from smdebug.profiler.analysis.python_stats_reader import S3PythonStatsReader

PYTHON = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON")
SCRIPT = Path(__file__).parents[1] / "old_library" / "ask_python_profiles.py"
STEPS = [5, 6, 7, 8]
HALVES = [("stepstart", "forwardpassend"), ("forwardpassend", "stepend"), ("stepstart", "stepend")]
pytestmark = [
    pytest.mark.old_library,
    pytest.mark.skipif(
        PYTHON is None,
        reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
    ),
]


def spans(rng: random.Random) -> list[str]:
    """Return names of spans of steps, each half a second after the other, and of both ends."""
    found = [BEFORE_STEPS, AFTER_STEPS]
    for at in range(24):
        mode = rng.choice(["train", "train", "eval", "global"])
        start, end = rng.choice(HALVES)
        first = rng.choice(STEPS)
        last = first + rng.choice([0, 0, 0, 1])
        seconds = 3 + at / 2
        name = span(first, start, end, mode=mode, end_step=last, seconds=seconds, lasts=0.25)
        if rng.random() < 0.3:
            name = name.replace(f"_{mode}-{last}-{end}", f"_{mode}-{last + 1}-stepstart")
        if rng.random() < 0.1:
            name = name.replace(f"_{mode}-", "_predict-")
        found.append(name)
    return found


def make_tree(base: Path) -> Path:
    """Write profiles of three nodes; they differ in their numbers of calls."""
    rng = random.Random(7)
    nodes = ["11-algo-1", "3-algo-2", "x"]
    whole = [*spans(rng), span(STEPS[0], seconds=18)]
    for at, name in enumerate(whole):
        for node in rng.sample(nodes, rng.randint(1, 3)) if name != whole[-1] else nodes:
            write_table(base, name, table(2**at, 0.5**at), node=node)
            if rng.random() < 0.5:
                session = {"number": at, "root_frame": {"children": [{"time": 0.1}], "é": None}}
                write_pyinstrument(base, name, session, node=node)
    return base / "framework" / "pytorch"


READ = """
import json, sys
from smdebug.profiler.analysis.python_stats_reader import LocalPythonStatsReader
found = LocalPythonStatsReader(sys.argv[1]).load_python_profile_stats()
print(json.dumps([one.stats_path for one in found]))
"""


def test_a_folder_of_downloads_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = tmp_path / "job"
    write_table(job, span(9), table(1, 1), node="11-algo-1")
    monkeypatch.setattr(python_profiles, "open_store", lambda _: LocalStore(job))
    reader = S3PythonStatsReader(tmp_path / "local", "s3://bucket/job")
    (downloaded,) = reader.load_python_profile_stats()
    done = subprocess.run(
        [str(PYTHON), "-c", READ, reader.profile_dir],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [downloaded.stats_path]


def test_the_answers_are_the_same(tmp_path: Path) -> None:
    asked = [str(make_tree(tmp_path)), STEPS, BEGAN_US / 1e6]
    done = subprocess.run(
        [str(PYTHON), str(SCRIPT), json.dumps(asked)],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = json.loads(json.dumps(answers(*asked)))
    assert list(theirs) == list(ours)
    for part, expected in theirs.items():
        assert expected == ours[part]
    for part in ("functions", "sessions"):
        found = [one for one in ours[part].values() if one]
        assert len(found) > 80
        assert len({repr(one) for one in found}) > 15
