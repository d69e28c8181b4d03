"""Hostile content of index and event files, one by one: what each costs, and nothing else."""

import os
from pathlib import Path
from typing import Any

import pytest
import rawtrial
import victim
from victim import EVENT, GOOD, INDEX, RECORD, check_step_0, event, index, opened

from smdebug.exceptions import StepUnavailable, TensorDamaged, TensorUnavailableForStep


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return victim.make(tmp_path)


# -- index files: the whole step is not there ---------------------------------------------------

OUTSIDE = "a file inside the trial|an event file inside the trial"
NO_PAYLOAD = "key 'tensor_payload' or 'shape_payload', got neither"
INDEX_FILES = [
    pytest.param(index(event_file_name="/etc/passwd"), OUTSIDE, id="absolute"),
    pytest.param(index(event_file_name="../outside"), OUTSIDE, id="dots"),
    pytest.param(index(event_file_name="events/../../outside"), OUTSIDE, id="dots-inside"),
    pytest.param(index(event_file_name="..\\outside"), OUTSIDE, id="backslash"),
    pytest.param(index(event_file_name=""), OUTSIDE, id="empty-name"),
    pytest.param(index(event_file_name="events/a\0b"), OUTSIDE, id="nul"),
    pytest.param(index(event_file_name="events//x"), OUTSIDE, id="double-slash"),
    pytest.param(index(event_file_name="events/"), OUTSIDE, id="folder"),
    pytest.param(index(event_file_name=None), "key 'event_file_name'", id="no-event-file"),
    pytest.param(index(event_file_name=3), "Expected `str", id="event-file-is-a-number"),
    pytest.param(index(mode="train"), "a mode of TRAIN, EVAL", id="lower-case-mode"),
    pytest.param(index(mode=1), "Expected `str`", id="mode-is-a-number"),
    pytest.param(index(mode_step=-1), "a mode step >= 0, got -1", id="negative-mode-step"),
    pytest.param(index(mode_step=2**63), "a mode step >= 0", id="huge-mode-step"),
    pytest.param(index(mode_step="9" * 5000), "a mode step >= 0", id="endless-mode-step"),
    pytest.param(index(mode_step="x"), "a mode step >= 0, got 'x'", id="mode-step-is-a-word"),
    pytest.param(index(mode_step="²"), "a mode step >= 0", id="mode-step-is-a-superscript"),
    pytest.param(index(mode_step=1.5), "Expected `int", id="fractional-mode-step"),
    pytest.param(index(meta=None), "Expected `object`", id="no-meta"),
    pytest.param(index(start_idx="0"), "Expected `int`", id="start-is-a-word"),
    pytest.param(index(tensorname=None), "Expected `str`", id="no-name"),
    pytest.param(b"", "is cut off: expected a JSON object, got an empty file", id="empty"),
    pytest.param(index()[:-9], "is cut off: expected an index", id="cut"),
    pytest.param(index() * 2, "trailing characters", id="two-documents"),
    pytest.param(b"\0" * 4096, "is corrupt", id="zeros"),
    pytest.param(b"[" * 1_000_000, "is corrupt|is cut off", id="deep-lists"),
    pytest.param(b'{"meta":' * 100_000, "is corrupt|is cut off", id="deep-objects"),
    pytest.param(b'{"x":' + b"[" * 500_000, "is corrupt|is cut off", id="deep-unknown"),
    pytest.param(b"\xff" + index(), "is corrupt", id="not-utf-8"),
    pytest.param(index().decode().encode("utf-16"), "is corrupt", id="utf-16"),
    pytest.param(b'{"meta": {"mode": "TRAIN", "mode_step": 1}}', NO_PAYLOAD, id="no-payload"),
]


@pytest.mark.parametrize(("content", "message"), INDEX_FILES)
def test_a_hostile_index_file_costs_its_step(content: bytes, message: str, root: Path) -> None:
    (root / INDEX).write_bytes(content)
    trial = opened(root)
    assert trial.steps() == [0]
    check_step_0(trial)
    with pytest.raises(StepUnavailable, match=r"Step 1 of mode GLOBAL was not saved\."):
        trial.tensor("t").value(1)
    (problem,) = trial.index.file_problems.problems.items()
    key, text = problem
    assert key == INDEX
    assert any(one in text for one in message.split("|"))


# -- index files: one tensor is not there -------------------------------------------------------

SPANS = [
    pytest.param(-1, len(RECORD), id="negative-start"),
    pytest.param(0, -1, id="negative-length"),
    pytest.param(0, 0, id="no-length"),
    pytest.param(0, 15, id="shorter-than-a-frame"),
    pytest.param(0, len(RECORD) - 1, id="shorter"),
    pytest.param(0, len(RECORD) + 1, id="longer"),
    pytest.param(1, len(RECORD), id="shifted"),
    pytest.param(0, 2**31, id="longer-than-the-file"),
    pytest.param(0, 2**62, id="huge-length"),
    pytest.param(2**62, 2**62, id="both-huge"),
    pytest.param(2**63 - 1, 1, id="greatest-start"),
    pytest.param(2**64, 16, id="start-of-65-bits"),
    pytest.param(10**40, 10**40, id="astronomical"),
]


@pytest.mark.parametrize(("start", "length"), SPANS)
def test_a_hostile_span_costs_its_tensor(start: int, length: int, root: Path) -> None:
    (root / INDEX).write_bytes(index(start_idx=start, length=length))
    trial = opened(root)
    check_step_0(trial)
    assert trial.tensor("u").value(1).tolist() == GOOD.tolist()
    assert trial.steps() == [0, 1]
    with pytest.raises(TensorUnavailableForStep, match=r"^Tensor 't' "):
        trial.tensor("t").value(1)


SHAPES: list[Any] = [[-1], [1] * 65, [0] * 1_000_000, [2**70, -1]]


@pytest.mark.parametrize("shape", SHAPES, ids=["negative", "65", "a-million", "negative-too"])
def test_a_hostile_shape_costs_itself(shape: list[int], root: Path) -> None:
    record = {"tensorname": "s", "originalname": "s:0", "shape": shape}
    (root / INDEX).write_bytes(index(shape_payload=[record]))
    trial = opened(root)
    assert trial.tensor("t").value(1).tolist() == GOOD.tolist()
    assert not trial.has_tensor("s")
    (message,) = trial.index.file_problems.problems.values()
    assert message == f"a shape of {len(shape)} dimensions cannot be"


# -- event files: one tensor is damaged ---------------------------------------------------------

ONE = b"\0\0\x80\x3f"
EVENTS = [
    pytest.param(
        event(1, [2, 3], ONE * 5), "24 bytes for float32 of shape (2, 3), got 20", id="few"
    ),
    pytest.param(event(1, [2, 3], ONE * 7), "24 bytes for float32", id="many"),
    pytest.param(event(1, [], b""), "4 bytes for float32 of shape ()", id="none-for-a-scalar"),
    pytest.param(event(1, [2**62, 2**62], ONE), "bytes for float32", id="huge-product"),
    pytest.param(event(1, [0, 2**62, 2**62], b""), "is corrupt", id="huge-but-empty"),
    pytest.param(event(1, [2**63], ONE), "a size >= 0, got -9223372036854775808", id="negative"),
    pytest.param(event(1, [2**64 - 1], ONE), "a size >= 0, got -1", id="minus-one"),
    pytest.param(event(1, [1] * 65, ONE), "at most 64 dimensions", id="65-dimensions"),
    pytest.param(event(1, [1] * 500_000, ONE), "at most 64 dimensions", id="many-dimensions"),
    pytest.param(event(99, [1], ONE), "a known data type, got number 99", id="unknown-type"),
    pytest.param(event(2**63, [1], ONE), "a known data type", id="huge-type"),
    pytest.param(event(20, [1], ONE), "a known data type", id="resource"),
    pytest.param(event(0, [2], b"", (b"a",)), "2 strings, got 1", id="missing-string"),
    pytest.param(event(7, [1], b"", (b"\xff",)), "UTF-8 strings", id="bad-utf-8"),
    pytest.param(event(0, [], b""), "1 strings, got 0", id="nothing-at-all"),
    pytest.param(rawtrial.field(1, 5), "a field 'summary', got none", id="no-summary"),
    pytest.param(rawtrial.field(5, 5), "field 5 as bytes", id="summary-is-a-number"),
    pytest.param(rawtrial.field(5, b""), "a field 'value', got none", id="empty-summary"),
    pytest.param(
        rawtrial.field(5, rawtrial.field(1, b"")), "a field 'tensor', got none", id="no-tensor"
    ),
    pytest.param(b"\x2a\xff\xff\xff\xff\x0f", "a field of 4294967295 bytes", id="long-field"),
    pytest.param(b"\x2a" + b"\xff" * 9, "the rest of a varint", id="open-varint"),
    pytest.param(b"\xff" * 11, "a varint of at most 10 bytes", id="long-varint"),
    pytest.param(b"\x2b\x2c", "a protobuf wire type, got 3", id="group"),
    pytest.param(b"\x09\x00", "a field of 8 bytes, got 1", id="cut-double"),
    pytest.param(b"\x0d\x00", "a field of 4 bytes, got 1", id="cut-float"),
]


@pytest.mark.parametrize(("payload", "message"), EVENTS)
def test_a_hostile_event_costs_its_tensor(payload: bytes, message: str, root: Path) -> None:
    record = rawtrial.record(payload)
    (root / EVENT).write_bytes(record)
    (root / INDEX).write_bytes(index(length=len(record)))
    trial = opened(root)
    check_step_0(trial)
    with pytest.raises(TensorDamaged, match=r"^Tensor 't' cannot be read at step 1 of ") as raised:
        trial.tensor("t").value(1)
    assert message in str(raised.value)
    assert trial.tensor_names(step=1) == ["t", "u"]


FRAMES: dict[str, bytes] = {
    "zeros": b"\0" * 4096,
    "wrong-header-checksum": RECORD[:8] + b"\0\0\0\0" + RECORD[12:],
    "wrong-footer": RECORD[:-4] + b"\0\0\0\0",
    "huge-length": b"\xff" * 7 + b"\x3f" + RECORD[8:],
}


@pytest.mark.parametrize("content", FRAMES.values(), ids=FRAMES)
def test_a_hostile_frame_costs_its_tensor(content: bytes, root: Path) -> None:
    (root / EVENT).write_bytes(content)
    trial = opened(root)
    with pytest.raises(TensorDamaged, match="is corrupt: expected a record"):
        trial.tensor("t").value(1)
    check_step_0(trial)


@pytest.mark.parametrize("size", [0, 1, 15, 16, len(RECORD) - 1])
def test_a_cut_event_file_costs_its_tensor(size: int, root: Path) -> None:
    os.truncate(root / EVENT, size)
    trial = opened(root)
    message = rf"is cut off: expected {len(RECORD)} bytes at 0, got {size} of them\."
    with pytest.raises(TensorDamaged, match=message):
        trial.tensor("t").value(1)
    check_step_0(trial)
