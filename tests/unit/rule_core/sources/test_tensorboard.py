"""Folders with event files of TensorBoard are trials, whatever happens to the files."""

import math
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np
import pytest
from event_files import (
    LATER,
    NAME,
    event,
    event_file,
    framed,
    histogram,
    losses,
    simple,
    tensor,
    tensor_of,
)
from faulty_store import CountingStore
from hypothesis import given, settings
from hypothesis import strategies as st
from list_source import source_trial
from memory_store import MemoryStore
from s3_objects import make_bucket, put

from rule_core.exceptions import TensorUnavailableForStep
from rule_core.model.segments import global_step, resumed_at
from rule_core.modes import ModeKeys
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.source_record import SourceRecord
from rule_core.sources import tensorboard_events
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.open import open_sources
from rule_core.sources.tensorboard import FORMAT
from rule_core.storage.s3.store import S3Store

CURVES = ("train_loss/", "val_loss/", "test_net/")
Points = dict[str, list[tuple[int, float]]]


def opened(files: Mapping[str, bytes], *folders: str) -> SourceIndex:
    items = [Recognized("tensorboard", folder, "it is tested") for folder in folders or ("",)]
    return open_sources(MemoryStore(files), [(FORMAT, item) for item in items])


def points(index: SourceIndex) -> Points:
    return {
        name: [*zip(column.steps, column.values, strict=False)]
        for record in index._records
        for name, column in record.columns.items()
    }


def read(*records: bytes) -> SourceIndex:
    index = opened({NAME: event_file(*records)})
    index.refresh()
    return index


def folder_of(files: Mapping[str, list[str]], key: str = "run/") -> SourceFolder:
    return SourceFolder(key, files[""], lambda name: files.get(name, []), lambda _: b"")


def test_scalars_are_numbers_of_their_steps() -> None:
    records = [
        event(step, simple("loss", 1 / (step + 1)), time=1000.0 + step)
        for step in (0, 1, 127, 128, 16384, 1 << 21, 1 << 28, 1 << 35, 1 << 41, (1 << 48) - 1)
    ]
    index = read(*records, *losses(range(0, 300, 3), "other"))
    index.finish()
    trial = source_trial(index)
    steps = [0, 1, 127, 128, 16384, 1 << 21, 1 << 28, 1 << 35, 1 << 41, (1 << 48) - 1]
    assert trial.tensor("loss").steps() == steps
    for step in steps:
        assert trial.tensor("loss").value(step)[0] == np.float32(1 / (step + 1))
    assert index.tensors.row_time(16384, "worker_0@TRAIN") == 1000.0 + 16384
    assert not index.file_problems.problems


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0, 1e-45])
def test_no_number_is_lost(number: float) -> None:
    index = read(event(1, simple("loss", 1.0)), event(2, simple("loss", number)))
    ((_, first), (_, second)) = points(index)["loss"]
    assert first == 1.0
    np.testing.assert_array_equal(second, np.float32(number))


def test_every_kind_of_nan_is_kept() -> None:
    signalling = b"\x0a\x04loss\x15\x01\x00\xa0\x7f"
    index = read(event(1, signalling), event(2, signalling))
    assert [math.isnan(value) for _, value in points(index)["loss"]] == [True, True]


@pytest.mark.parametrize(
    "value",
    [
        tensor("loss", np.array(0.5, np.float32)),
        tensor("loss", np.array([0.5], np.float64)),
        tensor("loss", np.array(0.5, np.float16), name=""),
        tensor_of("loss", 1, b"\x2a\x04\x00\x00\x00\x3f"),  # float_val, packed
        tensor_of("loss", 1, b"\x2d\x00\x00\x00\x3f"),  # and on its own
        tensor_of("loss", 2, b"\x32\x08\x00\x00\x00\x00\x00\x00\xe0\x3f"),  # double_val
        tensor_of("loss", 19, b"\x6a\x02\x80\x70"),  # half_val
        tensor_of("loss", 14, b"\x6a\x02\x80\x7e"),  # of bfloat16
    ],
)
def test_scalars_of_tensorflow_are_numbers(value: bytes) -> None:
    assert points(read(event(3, value), event(4, value))) == {"loss": [(3, 0.5), (4, 0.5)]}


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (tensor("n", np.array(-7, np.int64)), -7),
        (tensor("n", np.array(200, np.uint8)), 200),
        (tensor("n", np.array([True])), 1),
        (tensor_of("n", 3, b"\x3a\x01\x07"), 7),  # int_val
        (tensor_of("n", 9, b"\x52\x0a" + b"\xff" * 9 + b"\x01"), -1),  # int64_val
        (tensor_of("n", 23, b"\x8a\x01\x0a" + b"\xff" * 9 + b"\x01"), 2.0**64),  # uint64_val
        (tensor_of("n", 10, b"\x58\x01"), 1),  # bool_val
    ],
)
def test_integers_are_numbers(value: bytes, number: float) -> None:
    assert points(read(event(3, value))) == {"n": [(3, number)]}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scalars_of_tensorflow_are_read_by_their_layout(
    monkeypatch: pytest.MonkeyPatch, dtype: type[np.floating[Any]]
) -> None:
    parsed: list[object] = []
    parse = tensorboard_events.parse_event
    monkeypatch.setattr(
        tensorboard_events, "parse_event", lambda payload: parsed.append(1) or parse(payload)
    )
    numbers = [0.0, 1.5, math.nan, -math.inf, *(step / 7 for step in range(300))]
    records = [event(step, tensor("x", np.array(n, dtype))) for step, n in enumerate(numbers)]
    damaged = bytearray(records[200])
    damaged[-30] ^= 1
    records[200] = bytes(damaged)
    index = read(*records)
    del numbers[200]
    np.testing.assert_array_equal(
        [value for _, value in points(index)["x"]], np.array(numbers, dtype).astype(np.float64)
    )
    assert [step for step, _ in points(index)["x"]] == [*range(200), *range(201, 304)]
    assert "checksum" in index.file_problems.problems[NAME]
    assert len(parsed) < 20


SEEDS = [
    event(3, simple("loss", 1.0)),
    event(3, tensor("w", np.array([[0.0, 1, 2], [1, 4, 3]]), "histograms")),
    event(9, tensor("x", np.array(0.5))),
    event(5, tensor_of("x", 19, b"\x6a\x02\x80\x70")),
    event(7, histogram("h", [1.0, 2.0])),
    event(1 << 20, simple("loss", 2.0), simple("b", 3)),
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SEEDS), st.integers(0, 80), st.integers(0, 255))))
def test_layouts_read_what_parsing_reads(changes: list[tuple[bytes, int, int]]) -> None:
    records = []
    for record, place, byte in changes:
        payload = bytearray(record[12:-4])
        payload[place % len(payload)] = byte
        records += [record, framed(bytes(payload))]
    by_layout = read(*records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorboard_events, "MAX_SEARCHES", 0)
        parsed = read(*records)
    np.testing.assert_equal(points(by_layout), points(parsed))
    assert by_layout.file_problems.problems == parsed.file_problems.problems


def test_a_writer_may_name_the_plugin_once() -> None:
    array = np.array([[0.0, 1.0, 2.0], [1.0, 4.0, 3.0]])
    index = read(event(0, tensor("w", array, "histograms")), event(1, tensor("w", array, name="")))
    assert index._records[0].columns["w"].steps.tolist() == [0, 1]


def test_several_values_of_an_event_belong_to_its_step() -> None:
    index = read(*(event(n, simple("a", n), simple("b", -n), simple("c", 0)) for n in range(5)))
    assert index.steps.tolist() == [0, 1, 2, 3, 4]
    assert points(index)["b"] == [(n, -n) for n in range(5)]


def test_histograms_answer_what_they_know() -> None:
    numbers = [1.0, -2.0, 4.0]
    index = read(event(0, histogram("w", numbers)), event(1, histogram("w", [-3.0, -3.0])))
    index.finish()
    tensor_w = source_trial(index).tensor("w")
    for step, array in ((0, np.array(numbers)), (1, np.array([-3.0, -3.0]))):
        for name in ("min", "max", "mean", "std", "sum"):
            expected = getattr(array, name)()
            assert tensor_w.reduction_value(step, name) == pytest.approx(expected)
        assert tensor_w.reduction_value(step, "l2") == pytest.approx(np.linalg.norm(array))
    with pytest.raises(TensorUnavailableForStep):
        tensor_w.reduction_value(0, "max", abs=True)
    with pytest.raises(TensorUnavailableForStep):
        tensor_w.reduction_value(0, "median")
    with pytest.raises(TensorUnavailableForStep):
        tensor_w.value(0)


def test_histograms_of_tensorflow_know_their_extremes() -> None:
    buckets = np.array([[-2.0, 0.0, 1.0], [0.0, 2.0, 0.0], [2.0, 4.0, 2.0]])
    equal = np.array([[2.5, 3.5, 7.0]])
    index = read(
        event(0, tensor("w", buckets, "histograms")), event(1, tensor("w", equal, "histograms"))
    )
    index.finish()
    tensor_w = source_trial(index).tensor("w")
    assert [tensor_w.reduction_value(step, "min") for step in (0, 1)] == [-2.0, 3.0]
    assert [tensor_w.reduction_value(step, "max") for step in (0, 1)] == [4.0, 3.0]
    with pytest.raises(TensorUnavailableForStep):
        tensor_w.reduction_value(0, "mean")


@pytest.mark.parametrize(
    "value",
    [
        tensor("x", np.zeros((2, 2), np.float32)),  # of several numbers
        tensor("x", np.array(1 + 2j, np.complex64)),
        tensor("x", np.array(1.0, np.float32), "hparams"),
        tensor("x", np.zeros((0, 3)), "histograms"),
        tensor("x", np.array(1.0), "histograms"),
        tensor("x", np.zeros((2, 3)), "histograms"),
        tensor_of("x", 7, b"\x42\x04text", "text"),
        tensor_of("x", 1, b""),
        tensor_of("x", 3, b"\x3a\x80\x01" + b"\x01" * 128),
        b"\x0a\x01x" + b"\x22\x03\x08\x01\x10",  # an image
        b"\x0a\x01x",
        simple("", 1.0),
    ],
)
def test_what_is_no_number_is_passed_over(value: bytes) -> None:
    index = read(event(1, value), *losses(range(2, 4)))
    assert [*points(index)] == ["loss"]
    assert not index.file_problems.problems


@pytest.mark.parametrize(
    ("folder", "tags", "names"),
    [
        ("Train_Loss/", ["Train"], ["Train_Loss"]),
        ("loss/", ["train", "val", "0", "1"], ["loss/train", "loss/val", "loss", "1"]),
        ("loss/", ["acc"], ["acc"]),
        ("run_1/", ["Train"], ["Train"]),
    ],
)
def test_a_folder_called_after_a_metric_names_its_curves(
    folder: str, tags: list[str], names: list[str]
) -> None:
    records = [event(step, simple(tag, 1.0)) for step, tag in enumerate(tags)]
    index = opened({folder + NAME: event_file(*records)}, folder)
    index.refresh()
    assert [*points(index)] == names


def test_numbers_may_be_looked_at_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a profiler does that keeps the variables of the functions that it has seen."""
    kept: list[tuple[Any, ...]] = []
    pass_on = SourceRecord.points

    def points_kept(record: SourceRecord, *columns: Any) -> None:
        kept.append(columns)
        pass_on(record, *columns)

    monkeypatch.setattr(SourceRecord, "points", points_kept)
    numbers = [event(step, simple("loss", 1.0)) for step in range(3)]
    index = read(*numbers[:2], event(2, simple("new", 3.0)), *numbers[2:])
    assert points(index) == {"loss": [(0, 1.0), (1, 1.0), (2, 1.0)], "new": [(2, 3.0)]}
    assert sum(len(which) for _, which, *_ in kept) == 4


def test_every_cut_of_a_growing_file_leads_to_the_same_trial() -> None:
    whole = event_file(
        *losses(range(3)),
        event(3, tensor("other", np.array(0.5)), histogram("w", [1.0, 2.0])),
        *losses(range(4, 6)),
        *losses(range(4, 5)),
    )
    expected = opened({NAME: whole})
    expected.refresh()
    assert expected.segments == [0, global_step(1, 4)]
    for cut in range(len(whole)):
        files = {NAME: whole[:cut]}
        index = opened(files)
        index.refresh()
        before = points(index)
        files[NAME] = whole
        index.refresh()
        assert points(index) == points(expected)
        for name, column in before.items():
            assert points(index)[name][: len(column)] == column
        assert not index.file_problems.problems


def test_a_file_that_grows_byte_by_byte_leads_to_the_same_trial() -> None:
    whole = event_file(*losses(range(3)), event(3, tensor("other", np.array(0.5))))
    files = {NAME: b""}
    index = opened(files)
    for size in range(len(whole) + 1):
        files[NAME] = whole[:size]
        index.refresh()
    assert points(index) == points(
        read(*losses(range(3)), event(3, tensor("other", np.array(0.5))))
    )


@pytest.mark.parametrize("place", range(40))
def test_no_wrong_bit_goes_unnoticed(place: int) -> None:
    records = [*losses(range(100)), *losses([100]), *losses(range(101, 200))]
    start = len(event_file(*records[:100]))
    whole = bytearray(event_file(*records))
    assert len(records[100]) > 40
    whole[start + place] ^= 1
    index = opened({NAME: bytes(whole)})
    index.refresh()
    steps = [step for step, _ in points(index)["loss"]]
    is_length = place < 12
    assert steps == [*range(100), *(() if is_length else range(101, 200))]
    text = index.file_problems.problems[NAME]
    assert text.startswith(f"At byte {start}, ")
    assert ("length" in text) == is_length


def test_a_wrong_checksum_is_reported_once_for_a_file(caplog: pytest.LogCaptureFixture) -> None:
    records = losses(range(100))
    for place in (2, 50, 70):
        records[place] = records[place][:-1] + b"\x00"
    index = read(*records)
    assert len(points(index)["loss"]) == 97
    assert len(caplog.records) == 1


@pytest.mark.parametrize("length", [1 << 32, (1 << 63) - 1, (1 << 64) - 1])
def test_a_record_of_hostile_length_is_not_waited_for_in_memory(length: int) -> None:
    import struct

    from rule_core.format.tfrecord import FOOTER, masked_crc

    head = struct.pack("<Q", length)
    hostile = head + FOOTER.pack(masked_crc(head)) + bytes(100)
    files = {NAME: event_file(*losses(range(3)), hostile)}
    index = opened(files)
    index.refresh()
    assert len(points(index)["loss"]) == 3
    assert "too long" in index.file_problems.problems[NAME]
    file = next(iter(index.sources[0]._files.values()))  # type: ignore[attr-defined]
    assert not file._partial


def test_records_too_long_for_numbers_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.sources.tensorboard.MAX_RECORD", 1000)
    monkeypatch.setattr("rule_core.storage.growing_file.PIECE_BYTES", 700)
    image = framed(b"\x09" + bytes(8) + b"\x2a" + b"\x90\x4e" + bytes(10000))
    index = read(*losses(range(3)), image, *losses(range(3, 6)))
    assert [step for step, _ in points(index)["loss"]] == [*range(6)]


@pytest.mark.parametrize(
    "payload", [b"", b"\xff", b"\x09", b"\x2a\x05\x0a\xff", b"\x0b", b"\x2a\x03\x0a\x01\x07"]
)
def test_records_that_are_no_events_are_skipped(payload: bytes) -> None:
    index = read(*losses(range(3)), framed(payload), *losses(range(3, 5)))
    assert len(points(index)["loss"]) == 5
    assert bool(index.file_problems.problems) == (payload != b"")


@pytest.mark.parametrize("step", [-1, 1 << 48, -(1 << 63)])
def test_steps_out_of_range_are_skipped(step: int) -> None:
    index = read(*losses(range(2)), event(step, simple("loss", 1.0)), *losses(range(2, 4)))
    assert [at for at, _ in points(index)["loss"]] == [0, 1, 2, 3]
    assert "step" in index.file_problems.problems[NAME]


def test_a_step_that_goes_back_begins_a_segment_and_deletes_nothing() -> None:
    restart = framed(b"\x09" + bytes(8) + b"\x10\x05" + b"\x3a\x02\x08\x01")  # session_log: START
    files = {
        NAME: event_file(*losses(range(10))),
        LATER: event_file(restart, *losses(range(5, 12))),
    }
    index = opened(files)
    index.refresh()
    assert [step for step, _ in points(index)["loss"]] == [
        *range(10),
        *(global_step(1, step) for step in range(5, 12)),
    ]
    assert resumed_at(7, index.segments) == global_step(1, 5)


def test_files_are_followed_that_appear_and_disappear() -> None:
    files: MutableMapping[str, bytes] = {NAME: event_file(*losses(range(3)))}
    index = opened(files)
    index.refresh()
    files[NAME] += b"".join(losses(range(3, 5)))
    files[LATER] = event_file(*losses(range(5, 8)))
    index.refresh()
    del files[NAME]
    files[LATER] += b"".join(losses(range(8, 10)))
    index.refresh()
    assert [step for step, _ in points(index)["loss"]] == [*range(10)]


def test_two_writers_of_a_folder_do_not_disturb_each_other() -> None:
    files: MutableMapping[str, bytes] = {}
    live = opened(files)
    for step in range(0, 1000, 100):
        files[NAME] = event_file(*losses(range(step + 100)))
        files[LATER] = event_file(*losses(range(0, step + 50, 50), "accuracy"))
        live.refresh()
    once = opened(files)
    once.refresh()
    assert points(once) == points(live)
    assert [step for step, _ in points(once)["accuracy"]] == [*range(0, 950, 50)]
    assert once.segments == []


def test_a_file_that_is_restarted_keeps_its_history() -> None:
    files = {NAME: event_file(*losses(range(100)))}
    index = opened(files)
    index.refresh()
    files[NAME] = event_file(*losses(range(100, 103), "new"))
    index.refresh()
    assert len(points(index)["loss"]) == 100
    assert points(index)["new"][0][0] == global_step(1, 100)


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_many_tags_are_columns(count: int) -> None:
    records = [event(1, simple(f"tag/{n}", n)) for n in range(count)]
    index = read(*records, *(event(2, simple(f"tag/{n}", n)) for n in range(10)))
    columns = index._records[0].columns
    assert len(columns) == count
    assert columns["tag/7"].steps.tolist() == [1, 2]
    assert columns[f"tag/{count - 1}"].values[0] == count - 1


def test_event_files_are_recognised_by_name() -> None:
    assert [*FORMAT.recognize(folder_of({"": ["a.txt", LATER, NAME]}))] == [
        Recognized("tensorboard", "run/", "it holds 2 TensorBoard event files", None)
    ]
    assert not [*FORMAT.recognize(folder_of({"": ["0_worker_0.tfevents", "events/"]}))]
    assert not [*FORMAT.recognize(folder_of({"": ["sub/"], "sub/": [NAME]}))]


def test_folders_of_modes_are_parts_of_a_run() -> None:
    files = {"": ["train/", "validation/", "other/"], "train/": [NAME], "validation/": [NAME]}
    found = {item.key: item.mode for item in FORMAT.recognize(folder_of(files))}
    assert found == {"run/train/": ModeKeys.TRAIN, "run/validation/": ModeKeys.EVAL}


def test_folders_of_curves_are_parts_of_a_run() -> None:
    files = {"": ["train_loss/", "val_loss/", "test_net/"], **{key: [NAME] for key in CURVES}}
    found = {item.key: item.mode for item in FORMAT.recognize(folder_of(files, "data/loss/"))}
    assert found == {"data/loss/train_loss/": ModeKeys.TRAIN, "data/loss/val_loss/": ModeKeys.EVAL}


@pytest.mark.parametrize("count", [5, 200])
def test_an_evaluation_that_counts_epochs_is_on_the_axis_of_the_batches(count: int) -> None:
    records = []
    for epoch in range(4):
        records += losses(range(count * epoch + 1, count * (epoch + 1) + 1), "train/loss")
        records += losses([epoch], "val/loss")
    found = points(read(*records))
    assert [step for step, _ in found["val/loss"]] == [count, 2 * count, 3 * count, 4 * count]


def test_an_evaluation_that_is_late_keeps_its_step() -> None:
    late = [*losses([90], "train/loss"), *losses([80], "val/loss"), *losses([100], "train/loss")]
    assert [step for step, _ in points(read(*late))["val/loss"]] == [80]


def test_a_name_of_two_folders_counts_in_one_unit() -> None:
    iterations = [(77, "evaluation_loss_vs_iterations"), (0, "epoch_loss")]
    iterations += [(154, "evaluation_loss_vs_iterations"), (1, "epoch_loss")]
    validation = [record for step, tag in iterations for record in losses([step], tag)]
    files = {
        f"train/{NAME}": event_file(*losses(range(2), "epoch_loss")),
        f"validation/{NAME}": event_file(*validation),
    }
    folders = (("train/", ModeKeys.TRAIN), ("validation/", ModeKeys.EVAL))
    items = [
        (FORMAT, Recognized("tensorboard", key, "it is tested", mode)) for key, mode in folders
    ]
    index = open_sources(MemoryStore(files), items)
    index.refresh()
    index.finish()
    assert [*index.names_by_mode[ModeKeys.EVAL]["epoch_loss"]] == [0, 1]
    assert [*index.names["evaluation_loss_vs_iterations"]] == [77, 154]
    assert index.settled_step == 154


def test_curves_of_one_tag_are_parts_of_a_run() -> None:
    names = {
        "loss_a_train/": event_file(*losses(range(2), "loss/a")),
        "loss_a_val/": event_file(*losses(range(2), "loss/a")),
        "loss_a_other/": event_file(*losses(range(2), "loss/a")),
        "model_test/": event_file(*losses(range(2), "loss/a")),
        "empty_test/": event_file(),
        "no_train/": b"no event file",
    }
    folder = SourceFolder(
        "run/",
        [NAME, *names],
        lambda name: [NAME] if name in names else [],
        lambda name: names[name.removesuffix(NAME)],
    )
    assert {item.key: item.mode for item in FORMAT.recognize(folder)} == {
        "run/": None,
        "run/loss_a_train/": ModeKeys.TRAIN,
        "run/loss_a_val/": ModeKeys.EVAL,
    }


def test_growing_files_in_s3_are_read_by_ranges(aws_endpoint: str) -> None:
    make_bucket(aws_endpoint)
    records = losses(range(20_000))
    put(aws_endpoint, "run/", {NAME: event_file(*records[:10_000])})
    store = CountingStore(S3Store("s3://bucket/run"))
    index = open_sources(store, [(FORMAT, Recognized("tensorboard", "", "it is tested"))])
    index.refresh()
    size = len(event_file(*records[:10_000]))
    assert store.bytes == size
    put(aws_endpoint, "run/", {NAME: event_file(*records), LATER: event_file(*records[:10])})
    index.refresh()
    whole = len(event_file(*records)) + len(event_file(*records[:10]))
    assert whole <= store.bytes <= whole + 1000  # what tells whether the file is the same
    assert index.segments == [0, global_step(1, 0)]
    assert len(points(index)["loss"]) == 20_010
    before = store.counts["list"], store.bytes
    index.refresh()
    assert (store.counts["list"], store.bytes) == (before[0] + 1, before[1])


def test_event_files_do_not_say_that_a_run_has_ended() -> None:
    index = read(*losses(range(3)))
    assert index.sources[0].has_ended() is None
    assert index.sources[0].description == "The folder is read as tensorboard: it is tested."
