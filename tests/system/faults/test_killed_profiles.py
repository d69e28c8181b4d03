"""Trainings that are killed while they are profiled leave whole files, and one draft of a kind."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed.")

from rule_core.profiler.python_profiles.cprofile_file import parse_cprofile
from rule_core.trials.profiler_trial import ProfilerTrial

SCRIPT = Path(__file__).parents[2] / "support" / "profiled_victims.py"


def draft_kind(path: Path) -> str:
    return path.name.removesuffix(".tmp").rpartition("_")[2]


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 3), pytest.param(2, 100, marks=pytest.mark.nightly)]
)
def test_files_are_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int, count: int
) -> None:
    subprocess.run(
        [sys.executable, SCRIPT, tmp_path, str(seed), str(count)],
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    whole: Counter[str] = Counter()
    for number in range(count):
        folder = tmp_path / str(number) / "profile"
        for path in folder.rglob("pevents/**/*.json"):
            whole["events"] += len(json.loads(path.read_bytes()))
        for path in folder.rglob("*.pt.trace.json.gz"):
            whole["operators"] += len(json.loads(gzip.decompress(path.read_bytes())))
        for path in folder.rglob("python_stats"):
            whole["functions"] += bool(parse_cprofile(path.name, path.read_bytes()))
        kinds = Counter(map(draft_kind, folder.rglob("*.tmp")))
        assert set(kinds.values()) <= {1}
        assert not (folder / "framework" / "training_job_end.ts").exists()
        if (folder / "framework").exists():
            trial = ProfilerTrial("job", str(folder))
            trial.refresh()
            trial.framework_events(0, 1 << 60)
    assert caplog.text == ""  # no file is damaged
    assert min(whole[kind] for kind in ("events", "operators", "functions")) > 0
