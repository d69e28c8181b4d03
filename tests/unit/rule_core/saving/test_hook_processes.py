"""A hook and its process: forked children, ends of every kind, ranks and workers."""

import os
import subprocess
import sys
from pathlib import Path

import hooked
import pytest
import rawtrial
import trained
from hooked import ONES

from rule_core.saving.hook import Hook

ROOT = Path(__file__).parents[4]
END = rawtrial.TRAINING_JOB_END


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def run(manner: str, root: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a training job of its own until its end."""
    return subprocess.run(
        [sys.executable, "-X", "dev", trained.__file__, manner, str(root)],
        capture_output=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        text=True,
        timeout=100,
    )


def check(root: Path, count: int) -> None:
    """Show that a trial holds so many steps of `trained`, whole, and nothing else."""
    trial = hooked.opened(root)
    assert trial.steps() == list(range(count))
    assert trial.tensor_names() == sorted([*trained.NAMES, "scalar/lr"])
    for name in trained.NAMES:
        for step in range(count):
            expected = trained.value(name, step)
            assert trial.tensor(name).value(step).tobytes() == expected.tobytes()
    assert [one for one in hooked.files(root) if one.endswith(".tmp")] == []


@pytest.mark.merge
def test_forked_children_leave_the_trial_alone(tmp_path: Path) -> None:
    done = run("fork_children", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    check(tmp_path, 20)
    assert (tmp_path / END).exists()


def test_the_trial_is_complete_though_nobody_closed_the_hook(tmp_path: Path) -> None:
    done = run("end_without_close", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    check(tmp_path, 5)
    assert (tmp_path / END).exists()


def test_a_hook_that_saw_no_step_ends_in_peace(tmp_path: Path) -> None:
    done = run("end_without_a_step", tmp_path / "trial")
    assert (done.returncode, done.stderr) == (0, "")
    assert hooked.files(tmp_path / "trial") == [rawtrial.collections_key(), END]
    assert hooked.records(tmp_path / "trial-scalar") == {0: ["scalar/lr"]}


def test_a_training_that_fails_leaves_what_it_saved(tmp_path: Path) -> None:
    done = run("fail", tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("ArithmeticError: The training has failed.\n")
    assert hooked.records(tmp_path)[5] == ["b"]
    (tmp_path / rawtrial.index_key(5)).unlink()
    check(tmp_path, 5)
    assert (tmp_path / END).exists()


def test_on_sagemaker_the_platform_marks_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_JOB_NAME", "mine")
    with hooked.hook(tmp_path) as hook:
        hook.save_tensor("w", ONES)
    assert not (tmp_path / END).exists()
    assert hooked.records(tmp_path) == {0: ["w"]}


# -- ranks ------------------------------------------------------------------------------------

ENVIRONMENTS = {
    "torchrun": {"RANK": "2", "WORLD_SIZE": "4"},
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"},
    "both": {"RANK": "2", "WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"},
    "half": {"RANK": "0", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"},
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_launchers_tell_the_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for key, text in ENVIRONMENTS[name].items():
        monkeypatch.setenv(key, text)
    with hooked.hook(tmp_path, include_workers="all") as hook:
        assert (hook.rank, hook.world_size, hook.worker) == (2, 4, "worker_2")
        hook.save_tensor("w", ONES)
    assert hooked.records(tmp_path, "worker_2") == {0: ["w"]}
    with hooked.hook(tmp_path / "given", rank=0, world_size=1) as given:
        assert (given.rank, given.world_size) == (0, 1)


def test_one_process_alone_has_rank_0(tmp_path: Path) -> None:
    hook = hooked.hook(tmp_path)
    assert (hook.rank, hook.world_size, hook.worker) == (0, 1, "worker_0")
    hook.close()


def test_of_one_worker_only_the_first_writes(tmp_path: Path) -> None:
    hooks = [hooked.hook(tmp_path, rank=rank, world_size=2) for rank in (1, 0)]
    for hook in hooks[:1]:
        hook.save_tensor("w", ONES)
        hook.save_scalar("s", 1.0)
        hook.step()
        hook.close()
    assert hook.global_step == 0
    assert not list(tmp_path.iterdir())
    hooks[1].save_tensor("w", ONES)
    hooks[1].close()
    # A second process may begin when the first has written.
    hooked.hook(tmp_path, rank=1, world_size=2).close()
    assert hooked.opened(tmp_path).workers() == ["worker_0"]
    assert (tmp_path / END).exists()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_last_of_all_workers_marks_the_end(tmp_path: Path, order: tuple[int, ...]) -> None:
    hooks = [
        hooked.hook(tmp_path, include_workers="all", rank=rank, world_size=3) for rank in range(3)
    ]
    for rank, hook in enumerate(hooks):
        for step in range(2):
            hook.save_tensor("w", ONES * (10 * rank + step))
            hook.step()
    ended = []
    for rank in order:
        hooks[rank].close()
        ended.append((tmp_path / END).exists())
    assert ended == [False, False, True]
    assert not [one for one in hooked.files(tmp_path) if one.startswith("closed/")]
    trial = hooked.opened(tmp_path)
    assert trial.workers() == ["worker_0", "worker_1", "worker_2"]
    assert trial.steps() == [0, 1]
    assert trial.tensor("w").value(1, worker="worker_2").tolist() == [21, 21]


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    with Hook(tmp_path, dry_run=True, on_error="raise") as hook:
        for _ in range(3):
            hook.save_tensor("w", ONES)
            hook.save_scalar("s", 1.0)
            hook.step()
    assert (hook.global_step, hooked.files(tmp_path)) == (2, [])
