"""A training job that goes on: in the same trial, from a checkpoint, after a crash."""

from pathlib import Path
from typing import Any

import hooked
import numpy as np
import pytest
import rawtrial
from hooked import ONES

from rule_core.exceptions import SMDebugValueError
from rule_core.model.save_config import SaveConfig
from rule_core.saving.hook import Hook
from smdebug import modes

END = rawtrial.TRAINING_JOB_END
TURNS = (modes.TRAIN, modes.TRAIN, modes.EVAL)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def train(hook: Hook, steps: int, mark: int = 0) -> None:
    """Take so many steps in turns of modes; the tensor holds a mark."""
    for _ in range(steps):
        hook.set_mode(TURNS[(hook.global_step + 1) % 3])
        hook.save_tensor("w", np.array([mark]))
        hook.step()


def marked(root: Path) -> list[tuple[Any, ...]]:
    """Return steps, modes, mode steps and marks of a trial."""
    trial = hooked.opened(root)
    tensor = trial.tensor("w")
    return [
        (step, trial.mode_modestep(step)[0].name, trial.mode_modestep(step)[1], *tensor.value(step))
        for step in trial.steps()
    ]


def expected(*marks: int) -> list[tuple[Any, ...]]:
    """Return what `marked` gives of an uninterrupted training job."""
    found: list[tuple[Any, ...]] = []
    for step, mark in enumerate(marks):
        mode = TURNS[step % 3]
        mode_step = sum(one[1] == mode.name for one in found)
        found.append((step, mode.name, mode_step, mark))
    return found


def first_part(root: Path, steps: int = 4) -> Hook:
    """Train for some steps, without an end of the training job."""
    hook = hooked.hook(root)
    train(hook, steps, 1)
    hook.save_tensor("extra", ONES, "mine")
    hook.close()
    return hook


def test_all_counts_go_on(tmp_path: Path) -> None:
    with hooked.hook(tmp_path) as hook:
        train(hook, 4, 1)
    assert (tmp_path / END).exists()
    again = hooked.hook(tmp_path, resume=True)
    train(again, 1, 2)
    assert not (tmp_path / END).exists()
    train(again, 3, 2)
    again.close()
    assert (tmp_path / END).exists()
    assert marked(tmp_path) == expected(1, 1, 1, 1, 2, 2, 2, 2)


def test_members_and_patterns_stay(tmp_path: Path) -> None:
    with hooked.hook(tmp_path, include_regex="^first") as hook:
        hook.save_tensor("first/a", ONES, ())
        hook.save_tensor("b", ONES, "mine")
    with hooked.hook(tmp_path, resume=True, include_regex="^then") as again:
        again.save_tensor("then/c", ONES, ())
    assert hooked.members(tmp_path) == {"default": ["first/a", "then/c"], "mine": ["b"]}
    assert hooked.collections(tmp_path)["default"]["include_regex"] == ["^then", "^first"]


@pytest.mark.parametrize("at", [0, 2, 4, 7])
def test_steps_that_the_trial_has_are_not_written_again(tmp_path: Path, at: int) -> None:
    hook = hooked.hook(tmp_path)
    train(hook, at, 1)
    state = hook.state_dict()
    train(hook, 5 - min(at, 5), 1)
    hook.close()
    reached = max(at, 5)
    again = hooked.hook(tmp_path, resume=True)
    again.load_state_dict(state)
    assert again.state_dict() == state
    train(again, 8 - at, 2)
    again.close()
    assert marked(tmp_path) == expected(*[1] * reached, *[2] * (8 - reached))


def test_a_checkpoint_beyond_what_was_written(tmp_path: Path) -> None:
    config = SaveConfig(save_interval=10)
    hook = hooked.hook(tmp_path, save_config=config)
    for _ in range(15):
        hook.save_tensor("w", ONES)
        hook.step()
    state = hook.state_dict()
    hook.close()
    again = hooked.hook(tmp_path, save_config=config, resume=True)
    again.load_state_dict(state)
    for _ in range(15):
        again.save_tensor("w", ONES)
        again.step()
    again.close()
    assert again.global_step == 29
    assert sorted(hooked.records(tmp_path)) == [0, 10, 20]


def test_a_state_is_numbers_and_text(tmp_path: Path) -> None:
    hook = hooked.hook(tmp_path)
    assert hook.state_dict() == {"mode": "GLOBAL", "global_step": -1, "mode_steps": {}}
    train(hook, 3)
    state = hook.state_dict()
    assert state == {"mode": "EVAL", "global_step": 2, "mode_steps": {"TRAIN": 1, "EVAL": 0}}
    other = hooked.hook(tmp_path / "other")
    other.load_state_dict(state)
    assert (other.state_dict(), other.mode) == (state, modes.EVAL)
    other.save_tensor("w", ONES)
    with pytest.raises(SMDebugValueError, match=r"^The state of a hook must be loaded before its"):
        other.load_state_dict(state)
    hook.close()
    other.close()
    assert list(hooked.records(tmp_path / "other")) == [3]


def test_what_a_crash_left_is_harmless(tmp_path: Path) -> None:
    first_part(tmp_path)
    (tmp_path / END).unlink()
    next_step = 5
    left = [rawtrial.event_key(next_step), rawtrial.index_key(next_step), rawtrial.index_key(9)]
    left.append(rawtrial.collections_key())
    rawtrial.write(tmp_path, {f"{key}.tmp": b"of a crash" for key in left})
    # An event file whose index file was never written.
    rawtrial.write(tmp_path, {rawtrial.event_key(next_step): b"of a crash"})
    with hooked.hook(tmp_path, resume=True) as again:
        assert again.global_step == -1
        train(again, 1)
        assert again.global_step == next_step
    trial = hooked.opened(tmp_path)
    assert trial.steps() == [0, 1, 2, 3, 4, 5]
    assert trial.tensor("w").value(5).tolist() == [0]
    assert [one for one in hooked.files(tmp_path) if one.endswith(".tmp")] == [
        f"{rawtrial.index_key(9)}.tmp"
    ]


def test_there_may_be_nothing_to_go_on_with(tmp_path: Path) -> None:
    with hooked.hook(tmp_path / "new", resume=True) as hook:
        train(hook, 2)
    assert marked(tmp_path / "new") == expected(0, 0)


def test_one_worker_of_two_goes_on(tmp_path: Path) -> None:
    def part(rank: int, **options: Any) -> None:
        with hooked.hook(
            tmp_path, include_workers="all", rank=rank, world_size=2, **options
        ) as hook:
            train(hook, 2, rank)

    part(0)
    assert not (tmp_path / END).exists()
    part(1)
    assert (tmp_path / END).exists()
    part(0, resume=True)
    assert not (tmp_path / END).exists()
    part(1, resume=True)
    assert (tmp_path / END).exists()
    trial = hooked.opened(tmp_path)
    assert trial.steps() == [0, 1, 2, 3]
    assert trial.tensor("w").value(3, worker="worker_1").tolist() == [1]
