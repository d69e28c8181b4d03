"""smdebug 1.0.34 itself reads what our writer writes, and sees what we see."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trial_content import content

from smdebug import Collection, SaveConfig, modes
from smdebug.core.hook import Hook
from smdebug.core.writer import TrialWriter
from smdebug.trials import create_trial

PYTHON = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON")
SCRIPT = Path(__file__).parents[1] / "old_library" / "read_trial.py"
DEVICE = "/job:worker/replica:0/task:0/device:GPU:1"
pytestmark = [
    pytest.mark.old_library,
    pytest.mark.skipif(
        PYTHON is None,
        reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
    ),
]


def read_by_both(root: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> tuple[Any, Any]:
    """Return what the old library and what we read of a trial, in some modes or in all."""
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    done = subprocess.run(
        [str(PYTHON), str(SCRIPT), str(root), *names],
        capture_output=True,
        check=False,
        cwd=root,
        env={"PATH": os.environ["PATH"]},
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    selected = {name: modes[name] for name in names or modes.__members__}
    ours = content(create_trial(root, timeout=0), selected)
    return json.loads(done.stdout.splitlines()[-1]), json.loads(json.dumps(ours))


def values_of_every_type_it_can_read() -> dict[str, Any]:
    rng = np.random.default_rng(8)
    shapes = [(), (3,), (2, 3), (2, 1, 2), (1, 2, 2, 2)]
    types = ("float16", "float32", "float64", "int32", "int64", "uint8", "bool", "complex128")
    numbers = {
        f"{dtype}/{len(shape)}-D": rng.normal(0, 9, size=shape).astype(np.int8).astype(dtype)
        for dtype in types
        for shape in shapes
    }
    return numbers | {
        "special": np.array([np.nan, np.inf, -np.inf, -0.0]),
        "big endian": np.arange(3, dtype=">f4"),
        "python float": 2.5,
        "python int": -3,
        "python bool": True,
        "strings": ["", "a", "ünïcode ✓"],
        "one string": "loss",
    }


def test_values_of_every_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = values_of_every_type_it_can_read()
    with TrialWriter(tmp_path) as writer:
        for step in (0, 1, 2_000_000_000):
            writer.step(step, values)
    theirs, ours = read_by_both(tmp_path, monkeypatch)
    assert theirs == ours
    assert ours["names"] == sorted(values)
    assert [len(one["saved"]) for one in ours["tensors"].values()] == [3] * len(values)
    assert ours["steps"]["GLOBAL"] == [0, 1, 2_000_000_000]


def test_modes_reductions_shapes_and_collections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"save_raw_tensor": True, "reductions": "min,abs_l2_norm", "save_shape": False}
    collections = [
        Collection("losses", ["loss"]),
        Collection("weights", ["^w", "weight$"], ["named"], reduction_config=config),
    ]
    with TrialWriter(tmp_path, collections=collections) as writer:
        writer.add_to_collection("late", ["scalar/lr"])
        for step in range(6):
            mode, mode_step = (modes.TRAIN, step) if step < 4 else (modes.EVAL, step - 4)
            writer.step(
                step,
                {"loss": 1 / (step + 1), "w": np.full((2, 3), step)},
                mode=mode,
                mode_step=mode_step,
                reductions={
                    "w": {("min", False): np.float32(step), ("l2", True): 2.0},
                    "gradient/w:0": {("mean", False): np.array(0.5), ("mean", True): 1.0},
                },
                shapes={"shape_only": (3, 4), "scalar_shape": (), "w": (9,)},
            )
        writer.step(6, {"scalar/lr": 0.1, "named": 1}, mode=modes.PREDICT, mode_step=0)
        writer.step(7, shapes={"shape_only": (5,)}, mode=modes.PREDICT, mode_step=1)
    theirs, ours = read_by_both(tmp_path, monkeypatch)
    assert theirs == ours
    assert ours["modes"] == ["TRAIN", "EVAL", "PREDICT"]
    assert ours["members"] == {
        "losses": ["loss"],
        "weights": ["named", "w"],
        "late": ["scalar/lr"],
    }


def test_medians(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"reductions": "median,abs_median,max"}
    saving = SaveConfig(save_interval=1)
    hook = Hook(tmp_path, save_config=saving, reduction_config=config, save_all=True)
    with hook:
        hook.save_tensor("w", np.array([-5.0, 1.0, 2.0]))
        hook.step()
    theirs, ours = read_by_both(tmp_path, monkeypatch)
    # The configuration of the collections is the one that knows medians.
    assert theirs.pop("collections") != ours.pop("collections")
    assert theirs == ours
    stored = create_trial(tmp_path).tensor("w").reduction_values(0)
    assert stored[("median", False)] == 1
    assert stored[("median", True)] == 2


def test_several_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["worker_0", "worker_1", DEVICE]
    writers = [
        TrialWriter(
            tmp_path, worker=name, num_workers=3, collections={"c": "w"}, end_job=name == DEVICE
        )
        for name in names
    ]
    for step in range(4):
        for rank, writer in enumerate(writers):
            if rank <= step:
                writer.step(step, {"w": np.array([step, rank]), f"only_{rank}": 1.0})
    for writer in writers:
        writer.close()
    theirs, ours = read_by_both(tmp_path, monkeypatch)
    assert theirs == ours
    assert ours["workers"] == sorted(names)
    assert ours["steps"]["GLOBAL"] == [0, 1, 2, 3]


def test_steps_of_several_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TrialWriter(tmp_path, collections={"losses": "loss"}) as writer:
        for step in (0, 10, 20):
            writer.step(step, {"loss": 2.0 + step}, mode=modes.TRAIN)
            if step != 10:
                losses = {"loss": 3.0 + step, "eval_loss": 1.0 + step}
                writer.step(step, losses, mode=modes.EVAL)
    # The old library finds the tensors of the second mode if it is asked for that mode.
    old, ours = read_by_both(tmp_path, monkeypatch, "TRAIN", "EVAL")
    for name in ("loss", "eval_loss"):
        for row in old["tensors"][name]["saved"]:
            row[2] = row[2].removesuffix("@EVAL")  # a worker of its own to the old library
    assert old == ours
    assert [row[:3] for row in ours["tensors"]["eval_loss"]["saved"]] == [
        ["EVAL", 0, "worker_0"],
        ["EVAL", 20, "worker_0"],
    ]
