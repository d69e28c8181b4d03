"""smdebug 1.0.34 itself reads what hooks write, and sees what we see."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import hooked
import numpy as np
import pytest
from trial_content import content

from smdebug import Collection, modes
from smdebug.core.hook import Hook
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig, SaveConfigMode
from smdebug.trials import create_trial

PYTHON = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON")
SCRIPT = Path(__file__).parents[1] / "old_library" / "read_trial.py"
pytestmark = [
    pytest.mark.old_library,
    pytest.mark.skipif(
        PYTHON is None,
        reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
    ),
]


def read(root: Path, monkeypatch: pytest.MonkeyPatch, *but: str) -> Any:
    """Return what the old library reads of a trial, which is what we read, but for some of it."""
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    done = subprocess.run(
        [str(PYTHON), str(SCRIPT), str(root)],
        capture_output=True,
        check=False,
        cwd=root,
        env={"PATH": os.environ["PATH"]},
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = content(create_trial(root, timeout=0), dict(modes.__members__))
    alike = [json.loads(json.dumps(one)) for one in (theirs, ours)]
    for one in alike:
        for key in but:
            del one[key]
    assert alike[0] == alike[1]
    return theirs


def train(hook: Hook) -> None:
    """Train in turns of modes, and save tensors of every kind."""
    rng = np.random.default_rng(4)
    with hook:
        for epoch in range(3):
            for mode, steps in ((modes.TRAIN, 4), (modes.EVAL, 2)):
                hook.set_mode(mode)
                for step in range(steps):
                    hook.save_tensor("net.0.weight", rng.normal(size=(3, 2)).astype(np.float32), ())
                    hook.save_tensor("net.0.bias", rng.normal(size=2), ())
                    hook.save_tensor("gradient/net.0.weight", rng.normal(size=(3, 2)), [])
                    hook.save_tensor("CrossEntropyLoss_output_0", np.float32(1 / (step + 1)), ())
                    hook.save_tensor("labels", rng.integers(0, 9, 4), ["mine", "late"])
                    hook.save_tensor("odd", np.array([np.nan, np.inf, -np.inf, -0.0]), "mine")
                    hook.save_tensor("texts", ["a", "ünï ✓"], "mine")
                    hook.save_scalar("lr", 0.1 / (epoch + 1))
                    hook.save_scalar("accuracy", np.float32(0.5), sm_metric=True)
                    hook.step()
            hook.save_scalar(f"epoch_{epoch}", epoch)


EVERYTHING: dict[str, Any] = {
    "reductions": ["min", "max", "mean", "std", "variance", "sum", "prod"],
    "abs_reductions": ["mean", "max"],
    "norms": ["l1", "l2"],
    "abs_norms": ["l2"],
}


@pytest.mark.parametrize(
    "config",
    [
        None,
        ReductionConfig(**EVERYTHING),
        ReductionConfig(**EVERYTHING, save_raw_tensor=True, save_shape=True),
        ReductionConfig(save_shape=True),
    ],
    ids=["values", "reductions", "all", "shapes"],
)
def test_a_training_in_turns_of_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: ReductionConfig | None
) -> None:
    steps = {modes.TRAIN: SaveConfigMode(save_interval=3), modes.EVAL: SaveConfigMode(2)}
    often = Collection("often", ["bias$"], save_config=SaveConfig(save_interval=1))
    hook = hooked.hook(
        tmp_path,
        save_config=SaveConfig(steps),
        reduction_config=config,
        include_collections=["weights", "gradients"],
        collections=[often],
    )
    hook.add_collection("often")
    train(hook)
    found = read(tmp_path, monkeypatch)
    # The losses and scalars of train steps 0, 3, 6, 9 and eval steps 0, 2, 4 are as they were.
    losses = found["tensors"]["CrossEntropyLoss_output_0"]["saved"]
    by_mode = [[one[1] for one in losses if one[0] == name] for name in ("TRAIN", "EVAL")]
    assert by_mode == [[0, 3, 6, 9], [0, 2, 4]]
    assert found["steps"]["GLOBAL"] == list(range(19))  # the last scalar has one of its own
    assert found["members"]["weights"] == ["net.0.weight"]
    assert found["members"]["often"] == ["net.0.bias"]
    assert found["members"]["late"] == ["labels"]
    assert found["members"]["sm_metrics"] == ["scalar/accuracy"]
    assert "scalar/epoch_2" in found["names"]


def test_two_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = [
        hooked.hook(tmp_path, include_workers="all", rank=rank, world_size=2, save_all=True)
        for rank in range(2)
    ]
    for step in range(3):
        for rank, hook in enumerate(hooks):
            hook.save_tensor("w", np.array([rank, step]))
            hook.save_tensor(f"only_{rank}", np.ones((2, 2)), ())
            hook.step()
    for hook in hooks:
        hook.close()
    # It reads the collections of one worker only.
    found = read(tmp_path, monkeypatch, "collections", "members")
    assert found["workers"] == ["worker_0", "worker_1"]
    assert found["steps"]["GLOBAL"] == [0, 1, 2]
    assert found["names"] == ["only_0", "only_1", "w"]


def test_a_resumed_training_and_scalars_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in range(2):
        with hooked.hook(tmp_path, resume=part > 0) as hook:
            hook.set_mode(modes.TRAIN)
            hook.save_tensor("w", np.array([part]), f"part_{part}")
            hook.step()
            hook.set_mode(modes.EVAL)
            hook.save_scalar("alone", part)
    found = read(tmp_path, monkeypatch)
    assert (found["steps"]["TRAIN"], found["steps"]["EVAL"]) == ([0, 1], [0, 1])
    assert found["members"]["part_0"] == found["members"]["part_1"] == ["w"]
