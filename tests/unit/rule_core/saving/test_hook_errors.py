"""What goes wrong around a hook: the training goes on, and hears of it once."""

import errno
import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hooked
import numpy as np
import pytest
import rawtrial
from hooked import ONES, Full, Gate, ToldOutput

from rule_core.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from rule_core.model.save_config import SaveConfig
from rule_core.saving.hook import Hook
from smdebug import modes

OFF = "The hook is off for the rest of the training job: "
Log = pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def said(log: Log, level: int = logging.WARNING) -> list[str]:
    """Return what was logged at a level."""
    return [one.getMessage() for one in log.records if one.levelno == level]


def written_to(output: ToldOutput, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the hooks that are made from now on write to an output."""
    monkeypatch.setattr("rule_core.saving.hook.open_output", lambda _: output)


# -- errors -----------------------------------------------------------------------------------


def test_an_error_is_logged_once_and_turns_the_hook_off(tmp_path: Path, caplog: Log) -> None:
    with Hook(tmp_path, save_config=hooked.ALWAYS) as hook:
        hook.save_tensor("w", ONES)
        hook.step()
        hook.set_mode("TRAIN")  # type: ignore[arg-type]  # what is tested
        hook.set_mode("EVAL")  # type: ignore[arg-type]  # the same
        for _ in range(3):
            hook.save_tensor("w", ONES)
            hook.save_scalar("s", 1)
            hook.step()
        assert (hook.is_off, hook.mode, hook.global_step) == (True, modes.GLOBAL, 0)
    assert said(caplog, logging.ERROR) == [
        OFF + "SMDebugTypeError: A mode must be one of smdebug.modes, got 'TRAIN'."
    ]
    assert caplog.records[0].exc_info is not None
    assert hooked.records(tmp_path) == {0: ["w"]}
    assert (tmp_path / "training_job_end.ts").exists()


def test_an_error_in_a_step_forgets_that_step(tmp_path: Path) -> None:
    with Hook(tmp_path, save_config=hooked.ALWAYS) as hook:
        for _ in range(2):
            hook.save_tensor("w", np.zeros(3_000_000))
            hook.save_tensor("v", np.zeros(3_000_000))
            if hook.global_step == 0:
                hook.step()
        hook.set_mode(None)  # type: ignore[arg-type]  # what is tested
    assert hooked.records(tmp_path) == {0: ["w", "v"]}
    assert [one for one in hooked.files(tmp_path) if one.endswith(".tmp")] == []


def test_errors_are_raised_if_asked_to(tmp_path: Path, caplog: Log) -> None:
    hook = hooked.hook(tmp_path)
    with pytest.raises(SMDebugTypeError, match=r"^A mode must be one of smdebug\.modes, got 5\.$"):
        hook.set_mode(5)  # type: ignore[arg-type]  # what is tested
    assert len(said(caplog, logging.ERROR)) == 1
    hook.step()
    hook.close()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"max_queue_bytes": 0}, r"^Argument 'max_queue_bytes' must be at least 1, got 0\.$"),
        ({"when_full": "wait"}, r"^Argument 'when_full' must be one of block, drop, got 'wait'\.$"),
        ({"on_error": ""}, r"^Argument 'on_error' must be one of disable, raise, got ''\.$"),
    ],
)
def test_arguments_out_of_range(tmp_path: Path, options: Any, match: str) -> None:
    with pytest.raises(SMDebugValueError, match=match):
        Hook(tmp_path, **options)


@pytest.mark.parametrize("ended", [True, False])
def test_a_folder_that_holds_a_trial_is_refused(tmp_path: Path, ended: bool) -> None:
    with hooked.hook(tmp_path) as hook:
        hook.save_tensor("w", ONES)
    if not ended:
        (tmp_path / "training_job_end.ts").unlink()
    what = "the trial of a training job that has ended.*" if ended else "a trial that worker_0 has"
    before = hooked.files(tmp_path)
    with pytest.raises(SMDebugRuntimeError, match=rf"^Folder '{tmp_path}' holds {what}.*resume"):
        Hook(tmp_path)
    Hook(tmp_path, dry_run=True).close()
    assert hooked.files(tmp_path) == before


def test_a_place_that_is_no_folder(tmp_path: Path, caplog: Log) -> None:
    (tmp_path / "file").write_text("mine")
    with Hook(tmp_path / "file", save_config=hooked.ALWAYS) as hook:
        hook.save_tensor("w", ONES)
        hook.step()
        assert hook.is_off
    assert len(said(caplog, logging.ERROR)) == 1
    assert (tmp_path / "file").read_text() == "mine"


# -- a disk that is full ----------------------------------------------------------------------


def train(hook: Hook, steps: int, size: int = 2) -> None:
    for step in range(steps):
        hook.save_tensor("w", np.full(size, step, np.float32))
        hook.step()


def test_a_full_disk_ends_the_trial_and_not_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    output = ToldOutput(Full(3))
    written_to(output, monkeypatch)
    with Hook("there", save_config=hooked.ALWAYS) as hook:
        train(hook, 50)
    (error,) = said(caplog, logging.ERROR)
    assert error == (
        f"{OFF}OSError: [Errno 28] No space left on device: "
        "'events/000000000003/000000000003_worker_0.tfevents'"
    )
    trial = hooked.opened(rawtrial.write(tmp_path / "copy", output.content))
    assert hooked.values(trial, "w") == {step: [step, step] for step in range(3)}
    assert "training_job_end.ts" in output.content
    assert output.discarded == ["events/000000000003/000000000003_worker_0.tfevents"]


def test_an_error_behind_is_raised_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, full = Gate(), Full(0)
    written_to(ToldOutput(lambda key: (gate(key), full(key))), monkeypatch)
    hook = hooked.hook(Path("there"))
    train(hook, 2)
    recording = hook._recorder
    assert recording is not None
    gate.opened.set()
    recording._queue.close()
    with pytest.raises(OSError, match="No space left on device") as raised:
        hook.save_scalar("s", 1)
    assert raised.value.errno == errno.ENOSPC
    hook.save_tensor("w", ONES)
    hook.close()


def test_an_error_behind_that_no_call_came_after_is_raised_by_close(
    monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    gate, full = Gate(), Full(0)
    written_to(ToldOutput(lambda key: (gate(key), full(key))), monkeypatch)
    hook = hooked.hook(Path("there"))
    train(hook, 1)
    gate.opened.set()
    with pytest.raises(OSError, match="No space left on device"):
        hook.close()
    hook.close()
    hook.save_tensor("w", ONES)
    assert len(said(caplog, logging.ERROR)) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a file system of a quarter of a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"No file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("size", [10, 2_000, 20_000, 200_000])
def test_a_small_disk(small_disk: Path, caplog: Log, size: int) -> None:
    root = small_disk / "trial"
    hook = Hook(root, save_config=hooked.ALWAYS)
    train(hook, 200, size)
    hook.close()
    (error,) = said(caplog, logging.ERROR)
    assert "OSError: [Errno 28] No space left on device" in error
    steps = sorted(hooked.indexes(root))
    assert steps == list(range(len(steps)))
    assert [one for one in hooked.files(root) if one.endswith(".tmp")] == []
    trial = hooked.opened(root)
    if steps:
        assert hooked.values(trial, "w") == {step: [step] * size for step in steps}


@pytest.mark.parametrize("when", ["close", "next"])
def test_scalars_of_steps_that_the_trial_has_cannot_break_the_end(
    tmp_path: Path, when: str, caplog: Log
) -> None:
    with hooked.hook(tmp_path) as hook:
        train(hook, 5)
    again = hooked.hook(tmp_path, resume=True)
    again.load_state_dict({"mode": "GLOBAL", "global_step": 1, "mode_steps": {"GLOBAL": 1}})
    again.save_scalar("lr", 1.0)
    if when == "next":
        again.step()
    again.close()
    assert (said(caplog, logging.ERROR), sorted(hooked.records(tmp_path))) == ([], [*range(5)])
    assert (tmp_path / "training_job_end.ts").exists()


def test_what_was_queued_is_written_though_the_end_goes_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Log
) -> None:
    hook = Hook(tmp_path, save_config=SaveConfig(save_interval=1))
    train(hook, 3)

    def broken() -> None:
        msg = "Broken."
        raise RuntimeError(msg)

    monkeypatch.setattr(hook, "_finish", broken)
    hook.close()
    assert said(caplog, logging.ERROR) == [OFF + "RuntimeError: Broken."]
    assert sorted(hooked.records(tmp_path)) == [0, 1, 2]
    assert (tmp_path / "training_job_end.ts").exists()


Call = Callable[[Hook], object]


@pytest.mark.parametrize(
    "call",
    [
        lambda hook: hook.save_tensor("late", ONES),
        lambda hook: hook.save_scalar("late", 1.0),
        lambda hook: hook.step(),
        lambda hook: hook.set_mode(modes.TRAIN),
        lambda hook: hook.set_mode("nonsense"),
        lambda hook: hook.add_collection("late"),
        lambda hook: hook.close(),
    ],
    ids=["tensor", "scalar", "step", "mode", "no mode", "collection", "close"],
)
def test_calls_after_the_end_do_nothing(tmp_path: Path, call: Call, caplog: Log) -> None:
    hook = hooked.hook(tmp_path)
    train(hook, 1)
    hook.close()
    before = {one: (tmp_path / one).read_bytes() for one in hooked.files(tmp_path)}
    state = hook.state_dict()
    call(hook)
    assert {one: (tmp_path / one).read_bytes() for one in hooked.files(tmp_path)} == before
    assert (hook.state_dict(), said(caplog)) == (state, [])
