"""States of the Trainer: prefixes of one history, resumed runs, pointers and damage."""

import json
import math
from pathlib import Path
from typing import Any, ClassVar

import pytest
import s3_objects
from clocks import PatientClock
from faulty_s3 import FaultyS3
from source_files import Content, Followed, recognized

from rule_core.sources.contract import Row, SourceContract
from rule_core.sources.documents.trainer_state import FORMAT
from rule_core.sources.format import SourceFormat
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.store import S3Store

KEY = "out/trainer_state.json"


def rows(*steps: int, factor: float = 1.0) -> list[dict[str, Any]]:
    return [{"epoch": 0.5, "loss": factor * step, "lr": 0.1, "step": step} for step in steps]


def state(log: list[dict[str, Any]], step: int, last_step: int = 100) -> bytes:
    content = {"global_step": step, "log_history": log, "max_steps": last_step}
    return json.dumps(content, indent=2).encode()


def checkpoint(step: int) -> str:
    return f"out/checkpoint-{step}/trainer_state.json"


def losses(content: Content) -> list[tuple[str, float]]:
    return content.get("loss", [])


def test_training_and_evaluation_of_one_step() -> None:
    log = [
        {"epoch": 1.0, "grad_norm": math.nan, "learning_rate": 5e-05, "loss": 2.5, "step": 10},
        {"epoch": 1.0, "eval_loss": "2.25", "eval_runtime": 0.5, "step": 10},
        {"epoch": 1.0, "step": 10, "train_loss": 2.5, "train_runtime": 3.0},
    ]
    run = Followed(FORMAT, KEY, {KEY: state(log, 10)})
    assert repr(run.end()) == repr(
        {
            "grad_norm": [("10", math.nan)],
            "learning_rate": [("10", 5e-05)],
            "loss": [("10", 2.5)],
            "eval_loss": [("10", 2.25)],
            "eval_runtime": [("10", 0.5)],
        }
    )
    assert run.problems == []


def test_the_state_with_the_largest_step_is_read() -> None:
    files = {checkpoint(step): state(rows(*range(1, step + 1)), step) for step in (2, 9, 10)}
    assert len(losses(Followed(FORMAT, KEY, files).end())) == 10
    files[KEY] = state(rows(*range(1, 13)), 12)
    assert len(losses(Followed(FORMAT, KEY, files).end())) == 12
    files[KEY] = state(rows(1), 1)
    assert len(losses(Followed(FORMAT, KEY, files).end())) == 10


def test_the_next_checkpoint_gives_its_new_entries() -> None:
    run = Followed(FORMAT, KEY)
    run.files[checkpoint(2)] = state(rows(1, 2), 2)
    run.look()
    run.files[checkpoint(4)] = state(rows(1, 2, 3, 4), 4)
    del run.files[checkpoint(2)]
    run.look()
    run.files[checkpoint(3)] = state(rows(1, 2, 3), 3)  # copied late
    assert [step for step, _ in losses(run.look())] == ["1", "2", "3", "4"]
    assert run.index.segments == []


def test_a_resumed_run_goes_on_in_a_segment() -> None:
    run = Followed(FORMAT, KEY, {checkpoint(4): state(rows(1, 2, 3, 4), 4)})
    run.look()
    run.files[checkpoint(5)] = state(rows(1, 2) + rows(3, 4, 5, factor=2.0), 5)
    assert losses(run.look()) == [
        ("1", 1.0),
        ("2", 2.0),
        ("3", 3.0),
        ("4", 4.0),
        ("3 of segment 2", 6.0),
        ("4 of segment 2", 8.0),
        ("5 of segment 2", 10.0),
    ]


def test_a_file_that_is_being_written_waits() -> None:
    content = state(rows(1, 2), 2)
    for cut in range(len(content)):
        run = Followed(FORMAT, KEY, {checkpoint(1): state(rows(1), 1)})
        run.look()
        run.files[checkpoint(2)] = content[:cut]
        assert len(losses(run.look())) == 1
        assert run.problems == []
        run.files[checkpoint(2)] = content
        assert len(losses(run.look())) == 2


def test_a_newest_state_that_was_cut_off_leaves_the_one_before() -> None:
    files = {checkpoint(1): state(rows(1), 1), checkpoint(2): state(rows(1, 2), 2)[:-9]}
    run = Followed(FORMAT, KEY, files)
    assert losses(run.end()) == [("1", 1.0)]
    size = len(files[checkpoint(2)])
    problem = f"It is not read: it is not complete JSON ({size} bytes)."
    assert run.problems == [f"{checkpoint(2)}: {problem}"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
            "it is a Git LFS pointer; run git lfs pull in its repository",
        ),
        (b"[]", "it has no log_history: the Trainer of transformers did not write it"),
        (
            b'{"log_history": 3}',
            "it has no log_history: the Trainer of transformers did not write it",
        ),
        (b"", "it is not complete JSON (0 bytes)"),
        (b"[" * 100_000, "it is not complete JSON (100000 bytes)"),
    ],
)
def test_other_content_is_named_in_a_sentence(content: bytes, problem: str) -> None:
    run = Followed(FORMAT, KEY, {KEY: content})
    assert run.end() == {}
    assert run.problems == [f"{KEY}: It is not read: {problem}."]


def test_damaged_entries_are_skipped() -> None:
    log: list[Any] = [3, None, {"loss": 1}, {"step": "x", "loss": 1}, {"step": "2", "loss": True}]
    run = Followed(FORMAT, KEY, {KEY: state([*log, *rows(3)], 3)})
    assert losses(run.end()) == [("3", 3.0)]
    assert len(run.problems) == 1


def test_a_state_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_METADATA_BYTES", "10")
    run = Followed(FORMAT, KEY, {KEY: state(rows(1), 1)})
    assert run.end() == {}
    assert "more than the 10 that may be read" in run.problems[0]


def test_a_second_evaluation_of_the_last_step_is_no_new_segment() -> None:
    log = [*rows(1), {"eval_loss": 2.0, "step": 1}, {"eval_loss": 3.0, "step": 1}]
    run = Followed(FORMAT, KEY, {KEY: state(log, 1)})
    assert run.end()["eval_loss"] == [("1", 2.0)]
    assert run.problems == [
        f"{KEY}: eval_loss: Step 1 occurs more than once; its first value counts."
    ]


@pytest.mark.parametrize(
    ("step", "last_step", "is_stopped", "ended"),
    [(3, 3, False, True), (2, 3, False, None), (2, 3, True, True), (2, 0, False, None)],
)
def test_whether_the_run_has_ended(
    step: int, last_step: int, is_stopped: bool, ended: bool | None
) -> None:
    content = json.loads(state(rows(1), step, last_step))
    control = {"args": {"should_training_stop": is_stopped}}
    content["stateful_callbacks"] = {"TrainerControl": control}
    run = Followed(FORMAT, KEY, {KEY: json.dumps(content).encode()})
    run.look()
    assert run.index.sources[0].has_ended() is ended


@pytest.mark.parametrize("loss", [0.5, math.nan])
def test_the_filter_of_the_trainer_is_reported_unless_it_was_off(loss: float) -> None:
    log = [*rows(10), {"loss": loss, "step": 20}, *rows(30)]
    run = Followed(FORMAT, KEY, {KEY: state(log, 30)})
    assert "logging_nan_inf_filter" in run.index.sources[0].description
    run.end()
    caveats = "".join(run.index.caveats())
    assert ("logging_nan_inf_filter" in caveats) is math.isfinite(loss)


def test_what_is_recognized() -> None:
    content = state([], 0)
    inner = {"checkpoint-9/trainer_state.json": content, "checkpoint-10/model.safetensors": b""}
    assert [(item.key, item.reason) for item in recognized(FORMAT, inner)] == [
        (
            "trainer_state.json",
            "checkpoint-9/trainer_state.json is a state of Hugging Face's Trainer",
        )
    ]
    both = {**inner, "trainer_state.json": content}
    assert [item.key for item in recognized(FORMAT, both)] == ["trainer_state.json"]
    assert recognized(FORMAT, {"other/trainer_state.json": content, "checkpoint-x/a": b""}) == []


class TestTrainerState(SourceContract):
    """The contract of sources."""

    source_format: ClassVar[SourceFormat] = FORMAT

    def write(self, folder: Path, rows: list[Row]) -> None:
        log = [{"epoch": 0.0, **values, "step": step} for step, values in rows]
        (folder / "trainer_state.json").write_bytes(state(log, rows[-1][0]))


def test_checkpoints_in_s3(faulty: FaultyS3) -> None:
    client = s3_objects.client(faulty.endpoint)
    store = RetryingStore(S3Store(Bucket("s3://bucket/run", client)), PatientClock())
    run = Followed(FORMAT, KEY, store=store)
    assert run.look() == {}
    for step in (2, 4):
        content = state(rows(*range(1, step + 1)), step)
        s3_objects.put(faulty.endpoint, "run/", {checkpoint(step): content})
        assert len(losses(run.look())) == step
