"""Histories in JSON: cut, damaged, in several objects, and one object a file."""

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import Content, Followed, read, recognized

from rule_core.model.segments import global_step, step_text
from rule_core.sources.documents.document_source import IncompleteDocumentError
from rule_core.sources.documents.json_document import FORMAT, decode
from rule_core.sources.format import HEAD_BYTES, SourceFolder, Unreadable

ROWS = [{"epoch": n, "loss": 1 / n, "val_loss": 2 / n, "note": 'a "]} b'} for n in range(1, 30)]
TEXT = json.dumps(ROWS)


def test_values_that_json_does_not_know() -> None:
    content = read(FORMAT, b'{"loss": [NaN, Infinity, 1e999, ' + b"9" * 400 + b", -1]}")
    assert repr(content["loss"]) == repr(
        [("0", math.nan), ("1", math.inf), ("2", math.inf), ("3", math.inf), ("4", -1.0)]
    )


def test_the_last_of_equal_keys_counts() -> None:
    assert read(FORMAT, b'[{"epoch": 1, "loss": 1, "loss": 2}]') == {"loss": [("1", 2.0)]}


def test_objects_that_follow_each_other() -> None:
    text = "\n".join(json.dumps(row, indent=2) for row in ROWS).encode()
    assert read(FORMAT, text) == read(FORMAT, TEXT.encode())


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "run-train-tag-loss.json",
            b"[[1700000000.5, 50, 2.5], [1700000010.5, 100, 1.5]]",
            {"train/loss": [("50", 2.5), ("100", 1.5)]},
        ),
        ("val_loss.json", b"[2.5, 1.5]", {"val_loss": [("0", 2.5), ("1", 1.5)]}),
        ("price.json", b"[2.5, 1.5]", {}),
        ("run-a-tag-loss.json", b"[[1, 50, 2.5], [2, 100, 1.5]]", {}),  # no times
    ],
)
def test_lists_whose_file_says_what_they_hold(name: str, content: bytes, expected: Content) -> None:
    items = recognized(FORMAT, {name: content})
    assert [isinstance(item, Unreadable) for item in items] == [not expected]
    assert read(FORMAT, content, name) == expected


@given(st.integers(0, len(TEXT)))
def test_any_cut_is_a_prefix_of_the_rows(length: int) -> None:
    rows: object = []
    with suppress(IncompleteDocumentError):
        rows = decode(TEXT[:length].encode(), is_cut=True)
    assert isinstance(rows, list)
    assert len(rows) >= length // 90 - 1
    assert rows[:-1] == ROWS[: max(0, len(rows) - 1)]
    assert not rows or rows[-1].items() <= ROWS[len(rows) - 1].items()


@given(st.text(alphabet='[]{}",:1 ae\n'))
def test_any_text_is_decoded_or_incomplete(text: str) -> None:
    for is_cut in (False, True):
        with suppress(IncompleteDocumentError):
            decode(text.encode(), is_cut)


@pytest.mark.parametrize("char", ["[", '{"a":', "[{"])
def test_hostile_depth(char: str) -> None:
    assert recognized(FORMAT, {"a.json": char.encode() * 100_000}) == []
    followed = Followed(FORMAT, "log", {"log": char.encode() * 100_000})
    assert followed.end() == {}
    assert len(followed.problems) == 1


def test_an_incomplete_file_is_read_as_far_as_it_goes_when_the_run_has_ended() -> None:
    followed = Followed(FORMAT, "log", {"log": TEXT[:-30].encode()})
    assert followed.look() == {}
    content = followed.end()
    assert content["loss"][:2] == [("1", 1.0), ("2", 0.5)]
    assert len(content["loss"]) in (len(ROWS) - 1, len(ROWS))
    assert "not complete JSON" in followed.problems[0]


def test_an_incomplete_file_that_was_complete_says_nothing_new() -> None:
    followed = Followed(FORMAT, "log", {"log": TEXT.encode()})
    content = followed.look()
    followed.look(TEXT[:-30].encode())
    assert followed.end() == content


def test_lists_that_grow_one_after_the_other() -> None:
    followed = Followed(FORMAT, "log")
    followed.look(b'{"loss": [3.0, NaN], "val_loss": [4.0]}')
    followed.look(b'{"loss": [3.0, NaN, 1.0], "val_loss": [4.0]}')
    content = followed.look(b'{"loss": [3.0, NaN, 1.0], "val_loss": [4.0, 3.0, 2.0]}')
    assert [step for step, _ in content["loss"]] == ["0", "1", "2"]
    assert content["val_loss"] == [("0", 4.0), ("1", 3.0), ("2", 2.0)]


def test_another_run_in_the_file_is_another_segment() -> None:
    followed = Followed(FORMAT, "log")
    followed.look(b'[{"epoch": 1, "loss": 3.0}, {"epoch": 2, "loss": 2.0}]')
    content = followed.look(b'[{"epoch": 7, "loss": 9.0}]')
    assert content["loss"][:2] == [("1", 3.0), ("2", 2.0)]
    assert content["loss"][2:] == [(step_text(global_step(1, 7)), 9.0)]


def test_one_file_an_epoch_in_the_order_of_numbers() -> None:
    files = {f"m/metrics_epoch_{n}.json": b'{"loss": %d}' % n for n in (0, 2, 10)}
    files |= {"m/metrics.json": b'{"loss": 0}', "m/metrics_epoch_3.txt": b"{"}
    followed = Followed(FORMAT, "m/metrics_epoch_0.json", files)
    assert followed.look() == {"loss": [("0", 0.0), ("2", 2.0), ("10", 10.0)]}
    followed.files["m/metrics_epoch_11.json"] = b'{"lo'
    followed.files["m/metrics_epoch_12.json"] = b'{"loss": 12}'
    assert len(followed.look()["loss"]) == 3
    followed.files["m/metrics_epoch_11.json"] = b'{"loss": 11}'
    assert followed.look()["loss"][3:] == [("11", 11.0), ("12", 12.0)]


def test_what_is_recognized() -> None:
    history = b'[{"epoch": 1, "loss": 2.0}]'
    files = {
        "log": history,
        "run.json": b"\xef\xbb\xbf" + history,
        "cut.json": (b'{"loss": [' + b"0.5, " * HEAD_BYTES),
        "epoch_2.json": b'{"loss": 1}',
        "epoch_10.json": b'{"loss": 1}',
        "lines.json": b'{"epoch": 1, "loss": 2}\n{"epoch": 2, "loss": 2}\n',
        "trainer_state.json": b'{"log_history": [{"step": 1, "loss": 2}]}',
        "image.png": history,
        "notes.txt": b"[2024-01-01] loss 1",
        "empty": b"",
    }
    items = recognized(FORMAT, files)
    assert [item.key for item in items] == ["cut.json", "epoch_10.json", "log", "run.json"]


def test_of_many_files_that_are_alike_the_first_one_is_refused() -> None:
    names = [f"sample{n}.json" for n in range(50)]
    folder = SourceFolder("", names, lambda _: (), lambda _: b'{"width": 3}')
    (refused,) = FORMAT.recognize(folder)
    assert refused.key == "sample0.json"
    assert isinstance(refused, Unreadable)
    assert "no history" in refused.reason
