"""Records of TensorBoard's event files, read by our reader and by TensorBoard itself."""

import math
from pathlib import Path

import pytest

from rule_core.format.summary_encoder import scalars_record, text_record, version_record
from rule_core.format.tfrecord import unframe


def test_frames_have_the_checksum_of_their_payload() -> None:
    record = scalars_record(3, 1.5, {"loss": 0.5})
    assert unframe(memoryview(record), "x")
    damaged = bytearray(record)
    damaged[-5] ^= 1
    with pytest.raises(Exception, match="footer"):
        unframe(memoryview(damaged), "x")


def test_a_number_beyond_32_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        scalars_record(0, 0.0, {"loss": 1e39})
    assert scalars_record(0, 0.0, {"loss": math.inf, "nan": math.nan})


def test_tensorboard_reads_what_is_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed.")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    records = [
        version_record(10.0),
        scalars_record(0, 11.0, {"loss": 0.5, "ü/lr": math.inf}),
        scalars_record(2**40, 12.0, {"loss": -1.0}),
        text_record(7, 13.0, "rule_runner/Overfit", "**IssuesFound** at step 7"),
    ]
    (tmp_path / "events.out.tfevents.10.x").write_bytes(b"".join(records))
    read = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value, event.wall_time) for event in read.Scalars("loss")] == [
        (0, 0.5, 11.0),
        (2**40, -1.0, 12.0),
    ]
    assert read.Scalars("ü/lr")[0].value == math.inf
    (text,) = read.Tensors("rule_runner/Overfit")
    assert text.tensor_proto.string_val == [b"**IssuesFound** at step 7"]
    assert read.SummaryMetadata("rule_runner/Overfit").plugin_data.plugin_name == "text"
