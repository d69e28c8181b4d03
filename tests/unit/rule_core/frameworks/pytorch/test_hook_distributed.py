"""Two workers on gloo: each writes its part of one trial, under the names of the plain model."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_models import hook, opened, torch

from builtin_rules import RULES
from rule_core.trials.create_trial import create_trial

pytest.importorskip("torch", reason="torch is not installed.")
pytestmark = pytest.mark.skipif(
    not torch.distributed.is_gloo_available(), reason="This build of torch has no gloo."
)
WHEN = [pytest.param("before", marks=pytest.mark.nightly), "after"]
HERE = Path(__file__).parents[5]
SCRIPT = HERE / "tests" / "support" / "torch_workers.py"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def train(root: Path, manner: str, when: str, include: str) -> list[dict[str, Any]]:
    """Train with two workers; return what PyTorch itself saved of each."""
    shared = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "PYTHONPATH": str(HERE),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2",
    }
    workers = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), manner, when, include, str(root / "trial")],
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [one.communicate(timeout=100)[0] for one in workers]
    finally:
        for one in workers:
            one.kill()
    assert [one.returncode for one in workers] == [0, 0], "\n".join(said)
    return [dict(np.load(root / f"by_torch_{rank}.npz")) for rank in range(2)]


def plain_names(root: Path) -> list[str]:
    """Return the names that a run without other workers has."""
    watching = hook(root, save_all=True)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    watching.register_module(model)
    model(torch.ones(1, 4)).sum().backward()
    return opened(watching).tensor_names()


def check_values(root: Path, by_torch: list[dict[str, Any]], prefixes: tuple[str, ...]) -> None:
    """Compare what is so called with what PyTorch itself saved of each worker."""
    trial = create_trial(root / "trial", timeout=0)
    for rank, expected in enumerate(by_torch):
        for key, value in expected.items():
            step, _, name = key.partition(" ")
            if name.startswith(prefixes):
                found = trial.tensor(name).value(int(step), worker=f"worker_{rank}")
                np.testing.assert_allclose(found, value, rtol=1e-5, err_msg=f"{key} of {rank}")


@pytest.mark.parametrize("when", WHEN)
def test_all_workers_of_ddp(tmp_path: Path, when: str) -> None:
    by_torch = train(tmp_path, "ddp", when, "all")
    trial = create_trial(tmp_path / "trial", timeout=0)
    assert (trial.workers(), trial.num_workers) == (["worker_0", "worker_1"], 2)
    assert trial.steps() == [0, 1]
    assert trial.tensor_names() == plain_names(tmp_path / "plain")
    ends = [path.name for path in (tmp_path / "trial").iterdir() if "end" in path.name]
    assert ends == ["training_job_end.ts"]
    check_values(tmp_path, by_torch, ("Sequential",))
    # A worker's own gradients: the mean over the workers is what PyTorch trains with.
    name = "gradient/Sequential_2.weight"
    own = [trial.tensor(name).value(1, worker=worker) for worker in trial.workers()]
    assert not np.array_equal(*own)
    np.testing.assert_allclose(np.mean(own, axis=0), by_torch[0][f"1 {name}"], rtol=1e-5)
    rule = RULES["VanishingGradient"](trial)
    assert [rule.invoke_at_step(step) for step in trial.steps()] == [False, False]


def test_one_worker_of_ddp(tmp_path: Path) -> None:
    train(tmp_path, "ddp", "after", "one")
    trial = create_trial(tmp_path / "trial", timeout=0)
    assert (trial.workers(), trial.num_workers, trial.steps()) == (["worker_0"], 1, [0, 1])
    assert trial.tensor_names() == plain_names(tmp_path / "plain")


@pytest.mark.parametrize("when", WHEN)
def test_shards_of_fsdp(tmp_path: Path, when: str) -> None:
    by_torch = train(tmp_path, "fsdp", when, "all")
    trial = create_trial(tmp_path / "trial", timeout=0)
    assert (trial.workers(), trial.num_workers) == (["worker_0", "worker_1"], 2)
    assert trial.tensor_names() == plain_names(tmp_path / "plain")
    assert by_torch[0]["0 Sequential_0.weight"].shape == (2, 4)
    if when == "after":
        check_values(tmp_path, by_torch, ("Sequential", "gradient/"))
    else:
        # What the outermost module holds itself is gathered already when the step begins.
        check_values(tmp_path, by_torch, ("Sequential_0", "gradient/Sequential_0"))
        assert trial.tensor("Sequential_2.weight").shape(0, worker="worker_1") == (2, 4)
