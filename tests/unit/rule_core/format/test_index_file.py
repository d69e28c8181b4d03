import json
from contextlib import suppress
from typing import Any

import pytest
import rawtrial
from hypothesis import given
from hypothesis import strategies as st

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format import index_file
from rule_core.format.index_file import Entry, IndexFile, IndexParser, Span
from rule_core.format.paths import StepFile
from rule_core.modes import ModeKeys

KEY = rawtrial.index_key(3)
EVENT = rawtrial.event_key(3)
PLACE = StepFile(3, "worker_0")
NAMES = st.text(max_size=20)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES,
    lambda one: st.lists(one) | st.dictionaries(NAMES, one),
    max_leaves=8,
)


def document(**changes: Any) -> dict[str, Any]:
    meta = {"mode": "TRAIN", "mode_step": 3, "event_file_name": EVENT}
    return {"meta": meta, "tensor_payload": [tensor("w", 0, 190)], **changes}


def tensor(name: str, start: int, length: int) -> dict[str, Any]:
    return {"tensorname": name, "start_idx": start, "length": length}


def parse(content: object) -> IndexFile:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return IndexParser().parse(memoryview(data), KEY, PLACE)


def test_values_reductions_and_shapes_are_filed_under_their_tensor() -> None:
    result = parse(
        document(
            tensor_payload=[
                tensor("w", 0, 190),
                tensor("smdebug/reductions/mean/w", 190, 133),
                tensor("smdebug/reductions/abs_l2/w", 323, 133),
                tensor("smdebug/reductions/min/g:0", 456, 100),
            ],
            shape_payload=[
                {"tensorname": "w", "originalname": "w:0", "shape": [2, 3]},
                {"tensorname": "s", "shape": []},
            ],
        )
    )
    assert (result.mode, result.mode_step, result.event_key) == (ModeKeys.TRAIN, 3, EVENT)
    assert result.entries == {
        "w": Entry(
            Span(0, 190),
            {("mean", False): Span(190, 133), ("l2", True): Span(323, 133)},
            (2, 3),
            "w:0",
        ),
        "g:0": Entry(reductions={("min", False): Span(456, 100)}),
        "s": Entry(shape=(), original_name="s"),
    }
    assert result.damaged == {}


def test_of_two_records_of_a_name_the_last_one_counts() -> None:
    found = parse(document(tensor_payload=[tensor("w", 0, 1), tensor("w", 1, 2)]))
    assert found.entries["w"].raw == Span(1, 2)


def test_entries_do_not_share_their_reductions() -> None:
    names = ["smdebug/reductions/mean/a", "smdebug/reductions/mean/b"]
    found = parse(document(tensor_payload=[tensor(name, 0, 1) for name in names]))
    found.entries["a"].reductions["x", False] = Span(0, 0)
    assert list(found.entries["b"].reductions) == [("mean", False)]


@pytest.mark.parametrize("mode", ModeKeys)
def test_every_mode_is_known_with_blanks_around_it(mode: ModeKeys) -> None:
    meta = {"mode": f" {mode.name} ", "mode_step": 3, "event_file_name": EVENT}
    assert parse(document(meta=meta)).mode is mode


@pytest.mark.parametrize(
    ("mode_step", "expected"), [(0, 0), ("7", 7), (2**63 - 1, 2**63 - 1), ("007", 7)]
)
def test_mode_steps_are_numbers_or_digits(mode_step: object, expected: int) -> None:
    meta = {"mode": "TRAIN", "mode_step": mode_step, "event_file_name": EVENT}
    assert parse(document(meta=meta)).mode_step == expected


def test_a_file_of_shapes_needs_no_event_file() -> None:
    meta = {"mode": "EVAL", "mode_step": 3}
    found = parse({"meta": meta, "shape_payload": [{"tensorname": "s", "shape": [1]}]})
    assert (found.event_key, found.entries["s"].shape) == (None, (1,))


@pytest.mark.parametrize("payload", ["tensor_payload", "shape_payload"])
def test_an_empty_payload_is_a_file_without_tensors(payload: str) -> None:
    assert parse({"meta": {"mode": "EVAL", "mode_step": 3}, payload: []}).entries == {}


def test_unknown_keys_are_passed_over() -> None:
    assert parse(document(more={"a": [1, {"b": None}]})).entries["w"].raw == Span(0, 190)


@pytest.mark.parametrize(
    "record",
    [tensor("w", -1, 5), tensor("w", 0, -5), tensor("smdebug/reductions/mean/w", -1, -1)],
)
def test_a_span_that_cannot_be_costs_its_tensor(record: dict[str, Any]) -> None:
    found = parse(document(tensor_payload=[record, tensor("other", 5, 6)]))
    start, length = record["start_idx"], record["length"]
    message = f"a record at {start} of {length} bytes cannot be"
    assert found.damaged == {record["tensorname"]: message}
    assert list(found.entries) == ["other"]


def test_every_prefix_of_an_index_file_is_cut_off() -> None:
    content = json.dumps(document()).encode()
    assert parse(content).mode_step == 3
    for size in range(len(content)):
        with pytest.raises(TruncatedFileError, match=rf"^File '{KEY}' is cut off: expected "):
            parse(content[:size])


@given(ANY_JSON)
def test_any_json_is_no_index_file(content: object) -> None:
    with pytest.raises(CorruptFileError, match=rf"^File '{KEY}' is corrupt: expected "):
        parse(json.dumps(content).encode())


@given(st.binary(max_size=60))
def test_any_bytes_are_no_index_file(content: bytes) -> None:
    with pytest.raises((TruncatedFileError, CorruptFileError), match=rf"^File '{KEY}' is c"):
        parse(content)


@given(st.data())
def test_a_changed_byte_is_an_index_file_or_damage(data: st.DataObject) -> None:
    content = bytearray(json.dumps(document()).encode())
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(TruncatedFileError, CorruptFileError):
        found = parse(bytes(content))
        assert len(found.entries) + len(found.damaged) <= 1


def test_files_that_say_the_same_of_tensors_share_one_layout() -> None:
    parser = IndexParser()
    metas = [
        {"mode": "TRAIN", "mode_step": 9, "event_file_name": EVENT},
        {"mode": "EVAL", "mode_step": "3", "event_file_name": "events/other"},
    ]
    first, second = (
        parser.parse(json.dumps(document(meta=meta)).encode(), KEY, PLACE) for meta in metas
    )
    assert first.layout is second.layout
    assert (first.mode, first.mode_step, first.event_key) == (ModeKeys.TRAIN, 9, EVENT)
    assert (second.mode, second.mode_step, second.event_key) == (ModeKeys.EVAL, 3, "events/other")


def test_a_known_layout_still_needs_its_event_file() -> None:
    parser = IndexParser()
    parser.parse(json.dumps(document()).encode(), KEY, PLACE)
    bare = document(meta={"mode": "TRAIN", "mode_step": 3})
    with pytest.raises(CorruptFileError, match=r"expected key 'event_file_name', got none\.$"):
        parser.parse(json.dumps(bare).encode(), KEY, PLACE)


def test_layouts_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_file, "LAYOUTS_KEPT", 2)
    parser = IndexParser()
    for size in range(5):
        content = document(tensor_payload=[tensor("w", 0, size)])
        found = parser.parse(json.dumps(content).encode(), KEY, PLACE)
        assert found.entries["w"].raw == Span(0, size)
        assert len(parser._layouts) <= 2


def test_names_that_writers_do_not_give_are_kept() -> None:
    found = IndexParser().parse(json.dumps(document()).encode(), "index/x/3_worker_0.csv", PLACE)
    assert (found.key, found.event_key) == ("index/x/3_worker_0.csv", EVENT)
    assert parse(document()).key == KEY


def test_first_record_and_end_of_the_records() -> None:
    spans = [tensor("b", 10, 5), tensor("smdebug/reductions/mean/a", 0, 10)]
    found = parse(document(tensor_payload=spans))
    assert (found.first_record, found.end) == (Span(0, 10), 15)
    shapes = {"meta": {"mode": "EVAL", "mode_step": 3}, "shape_payload": []}
    assert (parse(shapes).first_record, parse(shapes).end) == (None, 0)
