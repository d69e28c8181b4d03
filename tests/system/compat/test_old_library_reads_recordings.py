"""What hooks of this project record, smdebug 1.0.34 reads and analyses as this project does."""

import json
import math
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed.")
pytest.importorskip("pyinstrument", reason="pyinstrument is not installed.")

import profiler_answers
import python_profile_answers
from profiled_training import train
from recorded_profiles import end_script

from rule_core.profiler.recording.sampler import process
from rule_core.trials.profiler_trial import ProfilerTrial
from rule_runner.debugger import FrameworkProfile, PythonProfilingConfig

PYTHON = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON")
SCRIPTS = Path(__file__).parents[1] / "old_library"
STEPS = [8, 9]
pytestmark = [
    pytest.mark.old_library,
    pytest.mark.skipif(
        PYTHON is None,
        reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
    ),
]


@pytest.fixture(autouse=True)
def _recording(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for the sampler on a busy machine, and end the profile after the hook."""
    monkeypatch.setattr(process, "STOP_TIMEOUT_S", 60.0)
    yield
    end_script()


def theirs(script: str, question: object, folder: Path) -> Any:
    """Return what the old library answers."""
    done = subprocess.run(
        [str(PYTHON), "-W", "ignore", str(SCRIPTS / script), json.dumps(question)],
        capture_output=True,
        check=False,
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


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
    return [difference for part in parts for difference in differences(*part)]


def rounded(answers: Any) -> Any:
    """Round numbers, also those in texts: times are summed in another order."""
    text = re.sub(r"\d+\.\d+(e-\d+)?", lambda match: f"{float(match[0]):.9g}", json.dumps(answers))
    return json.loads(text)


def test_readers_and_frames(tmp_path: Path) -> None:
    recording = tmp_path / "profile"
    train(tmp_path / "trial", FrameworkProfile(str(recording)))
    trial = ProfilerTrial("job", str(recording))
    trial.refresh()
    first, last = trial.first_timestamp, trial.newest_timestamp
    question = {
        "readers": [str(recording)],
        "frames": [(str(recording), first, last), (str(recording), first, (first + last) // 2)],
        "whole": [],
    }
    ours = json.loads(json.dumps(profiler_answers.answers(question)))
    assert differences(theirs("ask_profiler.py", question, tmp_path), ours) == []
    assert "Step:ModeKeys.EVAL" in json.dumps(ours)
    assert "CPUUtilization" in json.dumps(ours)


def test_python_profiles(tmp_path: Path) -> None:
    recording = tmp_path / "profile"
    train(tmp_path / "a", FrameworkProfile(str(recording)))
    python = PythonProfilingConfig(start_step=9, num_steps=3, python_profiler="pyinstrument")
    sampled = FrameworkProfile(str(recording), python_profiling_config=python)
    train(tmp_path / "b", sampled)
    folder = recording / "framework" / "pytorch"
    began = ProfilerTrial("job", str(recording))
    began.refresh()
    question = [str(folder), STEPS, began.first_timestamp / 1e6]
    ours = json.loads(json.dumps(python_profile_answers.answers(*question)))
    assert rounded(theirs("ask_python_profiles.py", question, tmp_path)) == rounded(ours)
    for part in ("functions", "sessions"):
        assert any(ours[part].values())
