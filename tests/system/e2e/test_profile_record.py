"""Unchanged PyTorch scripts under `profile record`, in the processes that they start."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from auto_host import Host
from recorded_profiles import events
from training_scripts import environment

from rule_core.profiler.recording.config_file import PATH_VARIABLE
from rule_core.profiler.recording.end_marks import SUPERVISED

pytest.importorskip("torch", reason="torch is not installed.")
RANGE = {"StartStep": 3, "NumSteps": 4}
ALL = {
    "DetailedProfilingConfig": RANGE,
    "DataloaderProfilingConfig": RANGE,
    "PythonProfilingConfig": RANGE,
}
TRAINING = """
import torch
from torch import nn

def train(steps):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(4 * steps, 8))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=4):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [parameter.tolist() for parameter in model.parameters()]
"""


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host("torch")
    yield host
    assert host.close() == 0


def run(host: Host, folder: Path, text: str, **settings: object) -> tuple[int, str, str]:
    """Run a script as `profile record` does; without settings, without a profile."""
    folder.mkdir()
    start = ""
    if settings:
        config, profile = folder / "config.json", str(folder / "profile")
        config.write_text(json.dumps({"ProfilingParameters": {"LocalPath": profile, **settings}}))
        variables = {PATH_VARIABLE: str(config), SUPERVISED: profile}
        start = f"import os\nos.environ.update({variables!r})\n"
    hook = {"include_workers": "none"}
    document = {"LocalPath": "unused", "HookParameters": hook, "CollectionConfigurations": []}
    (folder / "hook.json").write_text(json.dumps(document))
    if not settings:
        start = "import os\ndel os.environ['RULE_RUNNER_TRAIN']\n"
    return host.run(folder, start + TRAINING + text, None)


def phases(folder: Path) -> Counter[str]:
    return Counter(event.event_phase for event in events(folder))


def test_weights_are_the_same_with_and_without(host: Host, tmp_path: Path) -> None:
    code, without, _ = run(host, tmp_path / "a", "print(train(12))")
    assert code == 0
    code, recorded, err = run(host, tmp_path / "b", "print(train(12))", **ALL)
    assert (code, recorded) == (0, without), err
    found = phases(tmp_path / "b")
    steps = {"Step:ModeKeys.TRAIN", "Forward", "Backward(post-forward)", "Optimizer"}
    assert {name: found[name] for name in steps} == dict.fromkeys(steps, 12)
    assert found["DataLoaderIter::GetNext"] or found["DataLoaderIter"]
    assert found["cpu_functions"]
    assert len(list((tmp_path / "b").rglob("*.pt.trace.json.gz"))) == 4
    assert list((tmp_path / "b").rglob("python_stats"))
    assert not (tmp_path / "b" / "unused").exists()


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("import cProfile\ncProfile.run('print(len(train(12)))')", True),
        ("with torch.profiler.profile() as profile:\n    print(len(train(12)))", True),
    ],
)
def test_profilers_of_the_script_come_first(
    host: Host, tmp_path: Path, text: str, is_named: bool
) -> None:
    code, out, err = run(host, tmp_path / "a", text, **ALL)
    assert code == 0, err
    assert re.search(r"^4$", out, re.MULTILINE)
    assert ("not profiled" in err) is is_named
    assert phases(tmp_path / "a")["Step:ModeKeys.TRAIN"] == 12


def test_a_process_that_is_forked_after_a_training_is_recorded_too(
    host: Host, tmp_path: Path
) -> None:
    text = (
        "import multiprocessing\n"
        "train(3)\n"
        "process = multiprocessing.get_context('fork').Process(target=train, args=(4,))\n"
        "process.start()\nprocess.join()\nprint(process.exitcode)"
    )
    code, out, err = run(host, tmp_path / "a", text, RotateMaxFileSizeInBytes=10**6)
    assert (code, out) == (0, "0\n"), err
    steps = events(tmp_path / "a", "Step:ModeKeys.TRAIN")
    counts = Counter((event.event_args or {})["pid"] for event in steps)
    assert sorted(counts.values()) == [3, 4]


LAUNCHERS = {
    "torchrun": [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        "--standalone",
    ],
    "spawn": [sys.executable],
    "shell": ["sh", "-c", f"cd / && exec {sys.executable} $0"],
}


@pytest.mark.nightly
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_processes_that_a_launcher_starts(tmp_path: Path, launcher: str) -> None:
    text = "if __name__ == '__main__':\n    train(6)\n"
    if launcher == "spawn":
        text = (
            "if __name__ == '__main__':\n    import multiprocessing\n"
            "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
            "        pool.map(train, [6, 6], chunksize=1)\n"
            "        pool.close()\n        pool.join()\n"
        )
    script = tmp_path / "script.py"
    script.write_text(TRAINING + text)
    command = [sys.executable, "-m", "rule_runner", "profile", "record", "--output", "profile"]
    done = subprocess.run(
        [*command, "--", *LAUNCHERS[launcher], str(script)],
        cwd=tmp_path,
        env=environment({"OMP_NUM_THREADS": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = events(tmp_path, "Step:ModeKeys.TRAIN")
    processes = {(event.event_args or {})["pid"] for event in steps}
    assert len(steps) == 6 * (1 if launcher == "shell" else 2), done.stderr
    assert len(processes) in {1, 2}
    assert (tmp_path / "profile" / "framework" / "training_job_end.ts").exists()
