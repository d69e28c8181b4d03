"""Trials written to S3, by writers and by hooks: the same as in a folder, and never in the way."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_objects
from faulty_s3 import SLOW_DOWN, FaultyS3, says

from rule_core.exceptions import SMDebugRuntimeError
from rule_core.model.save_config import SaveConfig
from rule_core.saving.hook import Hook
from rule_core.saving.trial_writer import TrialWriter
from rule_core.storage.base import StorageUnavailableError
from rule_core.trials.create_trial import create_trial
from smdebug import modes

URI = "s3://bucket/runs/a b"
END = "training_job_end.ts"


@pytest.fixture
def faulty(faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> FaultyS3:
    """Return the server, with an empty bucket behind it; writers and readers talk to it."""
    client = s3_objects.client(faulty.endpoint)
    monkeypatch.setattr("rule_core.storage.aws.client", lambda *_, **__: client)
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    return faulty


@pytest.fixture
def aws(faulty: FaultyS3) -> str:
    """Return the endpoint behind."""
    return f"http://{faulty.behind}"


def keys(aws: str) -> list[str]:
    return sorted(s3_objects.content(aws, "runs/a b/"))


def write(path: Any, steps: int = 3, **options: Any) -> None:
    with TrialWriter(path, collections={"losses": "loss"}, **options) as writer:
        for step in range(steps):
            tensors = {"loss": 1.0 / (step + 1), "w": np.full((2, 3), step)}
            writer.step(step, tensors, mode=modes.TRAIN)


def event(step: int, worker: int = 0) -> str:
    return f"events/{step:012d}/{step:012d}_worker_{worker}.tfevents"


def index(step: int, worker: int = 0) -> str:
    return f"index/000000000/{step:012d}_worker_{worker}.json"


def saved(name: str = "w") -> dict[int, Any]:
    """Return the values of a tensor by step, as the trial has them."""
    found = create_trial(URI).tensor(name).values()
    return {step: value.tolist() for step, value in found.items()}


# -- writers ----------------------------------------------------------------------------------


def test_the_files_are_those_of_a_folder(
    aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rule_core.saving.step_writer.time.time", lambda: 1.7e9)
    write(URI)
    write(tmp_path)
    there = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert s3_objects.content(aws, "runs/a b/") == there


@pytest.mark.usefixtures("faulty")
def test_what_was_written_is_read() -> None:
    write(URI)
    trial = create_trial(URI)
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor("w").value(2).tolist() == [[2] * 3] * 2
    assert trial.loaded_all_steps


def test_index_files_come_after_event_files(faulty: FaultyS3) -> None:
    write(URI, steps=2)
    put = [path.partition("/runs/a%20b/")[2] for verb, path, _ in faulty.asked if verb == "PUT"]
    collections = "collections/000000000/worker_0_collections.json"
    assert put == [collections, event(0), index(0), event(1), index(1), END]


def test_a_large_step_goes_in_parts_and_its_index_file_after_it(faulty: FaultyS3, aws: str) -> None:
    value = np.arange(9 << 17, dtype=np.float64)
    with TrialWriter(URI) as writer:
        faulty.forget()
        writer.step(0, {"w": value})
    sent = [(verb, "uploadId=" in path) for verb, path, _ in faulty.asked]
    # Begun; two parts; completed; then the index file.
    assert sent[:5] == [("POST", False), *[("PUT", True)] * 2, ("POST", True), ("PUT", False)]
    assert faulty.asked[4][1].endswith(index(0))
    assert create_trial(URI).tensor("w").value(0).tolist() == value.tolist()
    assert s3_objects.uploads(aws) == []


def test_a_step_that_fails_is_missing_and_leaves_nothing(faulty: FaultyS3, aws: str) -> None:
    with TrialWriter(URI) as writer:
        writer.step(0, {"w": 1})
        faulty.due = [says(403, "AccessDenied")]
        with pytest.raises(OSError, match=r"^Cannot write 's3://bucket/runs/a b/events/.*Put"):
            writer.step(1, {"w": 1})
        writer.step(1, {"w": 2})
    assert saved() == {0: [1], 1: [2]}
    assert s3_objects.uploads(aws) == []


@pytest.mark.usefixtures("faulty")
def test_a_trial_that_is_there_is_refused() -> None:
    write(URI, end_job=False)
    with pytest.raises(SMDebugRuntimeError, match=r"'s3://bucket/runs/a b' holds a trial that w"):
        TrialWriter(URI)
    TrialWriter(URI, worker="worker_1").close()
    with pytest.raises(SMDebugRuntimeError, match="of a training job that has ended"):
        TrialWriter(URI)
    TrialWriter("s3://bucket/runs/a")


@pytest.mark.usefixtures("faulty")
def test_a_trial_is_gone_on_with() -> None:
    write(URI)
    with TrialWriter(URI, resume=True) as writer:
        assert (writer.last_step, writer.last_mode_steps) == (2, {modes.TRAIN: 2})
        writer.step(3, {"w": np.zeros(2)}, mode=modes.TRAIN)
    assert create_trial(URI).steps() == [0, 1, 2, 3]


def test_the_last_of_several_workers_ends_the_job(aws: str) -> None:
    writers = [
        TrialWriter(URI, worker=f"worker_{rank}", num_workers=2, end_job=False) for rank in (0, 1)
    ]
    for writer in writers:
        writer.step(0, {"w": 1})
    writers[0].close_worker()
    assert [key for key in keys(aws) if key in {END, "closed/worker_0"}] == ["closed/worker_0"]
    writers[1].close_worker()
    assert [key for key in keys(aws) if key.startswith(("closed", "training"))] == [END]


def test_no_bucket_is_made(aws: str) -> None:
    with pytest.raises(StorageUnavailableError, match="bucket 'other' does not exist"):
        TrialWriter("s3://other/t")
    buckets = s3_objects.client(aws).list_buckets()["Buckets"]
    assert [one["Name"] for one in buckets] == ["bucket"]


# -- hooks ------------------------------------------------------------------------------------


def train(hook: Hook, steps: int = 3) -> None:
    for step in range(steps):
        hook.set_mode(modes.TRAIN)
        hook.save_tensor("w", np.array([step]))
        hook.step()


def hook_of(**options: Any) -> Hook:
    return Hook(URI, save_config=SaveConfig(save_interval=1), **options)


@pytest.mark.usefixtures("faulty")
def test_a_hook_writes_a_trial() -> None:
    with hook_of() as hook:
        train(hook)
    assert saved() == {0: [0], 1: [1], 2: [2]}


@pytest.mark.usefixtures("faulty")
def test_a_hook_goes_on_with_a_trial() -> None:
    with hook_of() as hook:
        train(hook)
    with pytest.raises(SMDebugRuntimeError, match="of a training job that has ended"):
        hook_of()
    with hook_of(resume=True) as hook:
        train(hook)
    assert saved() == {step: [step % 3] for step in range(6)}


def test_a_busy_service_is_waited_for_behind_the_training(faulty: FaultyS3) -> None:
    with hook_of() as hook:
        train(hook, 1)
        faulty.due = [SLOW_DOWN] * 2
        train(hook, 2)
    assert create_trial(URI).steps() == [0, 1, 2]


def test_what_cannot_be_written_turns_the_hook_off_and_breaks_no_training(
    faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RULE_RUNNER_S3_DEADLINE", "0")
    hook = hook_of()
    train(hook, 2)
    hook._recorder.flush()
    faulty.due = [SLOW_DOWN] * 999
    train(hook, 3)
    hook.close()
    errors = [one.message for one in caplog.records if one.levelname == "ERROR"]
    assert hook.is_off
    (error,) = errors
    assert error == (
        "The hook is off for the rest of the training job: OSError: "
        f"Cannot write '{URI}/{event(2)}': SlowDown: Please reduce your request rate."
    )
    faulty.due.clear()
    assert create_trial(URI).tensor("w").steps() == [0, 1]


@pytest.mark.usefixtures("faulty")
def test_who_cannot_be_asked_at_first_breaks_no_training_either(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hook = Hook("s3://other/t")
    train(hook)
    hook.close()
    errors = [one.message for one in caplog.records if one.levelname == "ERROR"]
    (error,) = errors
    assert error == (
        "The hook is off for the rest of the training job: StorageUnavailableError: "
        "Cannot read 's3://other/t/training_job_end.ts': bucket 'other' does not exist. "
        "Check the address, and AWS_ENDPOINT_URL."
    )
    with pytest.raises(StorageUnavailableError, match=r"bucket .* does not exist"):
        Hook("s3://other/t", on_error="raise")


@pytest.mark.merge
def test_a_hook_that_ends_with_its_process(faulty: FaultyS3, aws: str, tmp_path: Path) -> None:
    del faulty
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np\n"
        "from smdebug.core.hook import Hook\n"
        "from smdebug.core.save_config import SaveConfig\n"
        f"hook = Hook({URI!r}, save_config=SaveConfig(save_interval=1))\n"
        "for step in range(3):\n"
        "    hook.save_tensor('w', np.array([step]))\n"
        "    hook.step()\n"
    )
    command = [sys.executable, script]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)
    assert keys(aws)[-1] == END
    assert saved() == {0: [0], 1: [1], 2: [2]}
