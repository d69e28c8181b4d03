"""The histories that documents hold, and the documents that hold none."""

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.sources.documents.document_rows import history, row_of
from rule_core.sources.documents.document_source import DocumentError
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.size_limit import METADATA_BYTES

Expected = list[Mapping[str, object]]
TWO: Expected = [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (TWO, TWO),
        (TWO[:1], TWO[:1]),
        ({"config": {"layers": [64, 10]}, "best": 1, "history": TWO}, TWO),
        ({"a": {"b": {"c": TWO}}}, TWO),
        ({"2": {"loss": 1.0}, "10": {"loss": 0.5}}, [
            {"step": 2, "loss": 1.0}, {"step": 10, "loss": 0.5},
        ]),
        ({"epoch_2": {"acc": 1.0}, "epoch_1": {"acc": 2.0}}, [
            {"epoch": 1, "acc": 2.0}, {"epoch": 2, "acc": 1.0},
        ]),
        ({"train": TWO, "val": TWO[1:]}, [
            {"epoch": 1, "train/loss": 2.0},
            {"epoch": 2, "train/loss": 1.0, "val/loss": 1.0},
        ]),
        ([{"loss": 2.0, "val": {"loss": 3.0}, "x": [1.0], "y": [1, 2], "n": None}] * 2, [
            {"loss": 2.0, "val/loss": 3.0, "x": 1.0}, {"loss": 2.0, "val/loss": 3.0, "x": 1.0},
        ]),
        ([{"epoch": 1, "loss": 2.0, "time": "10:00:01"}, {"epoch": 2, "loss": 1.0}], [
            {"epoch": 1, "loss": 2.0, "time": "10:00:01"}, {"epoch": 2, "loss": 1.0},
        ]),
        # one value a row: sorted by name, steps go back
        ([
            {"metricName": "loss", "metricValue": "2.5", "step": 0, "runContext": "train"},
            {"metricName": "loss", "metricValue": "1.5", "step": 10, "runContext": "train"},
            {"metricName": "val_loss", "metricValue": "3", "step": 0, "runContext": "validate"},
        ], [{"step": 0, "loss": "2.5", "val_loss": "3"}, {"step": 10, "loss": "1.5"}]),
        ([
            {"name": "loss", "value": 2, "step": 1, "split": "train"},
            {"name": "loss", "value": 3, "step": 1, "split": "val"},
        ], [{"step": 1, "loss": 2, "val/loss": 3}]),
        # lists
        ({"loss": [2, 1], "val_loss": [3], "layers": [64, 64], "betas": [0.9, 0.99, 1], "lr": 1}, [
            {"step": 0, "loss": 2, "layers": 64, "val_loss": 3},
            {"step": 1, "loss": 1, "layers": 64},
        ]),
        ({"epoch": [3, 6], "loss": [2, None], "each_loss": [1, 2, 3]}, [
            {"epoch": 3, "loss": 2}, {"epoch": 6, "loss": None},
        ]),
        ({"iter": [1, 2, 1], "epoch": [0, 0, 1], "loss": [3, 2, 1]}, [
            {"iter": 1, "epoch": 0, "loss": 3}, {"iter": 2, "epoch": 0, "loss": 2},
            {"iter": 1, "epoch": 1, "loss": 1},
        ]),
        ({"train": {"step": [1, 2], "loss": [3, 2]}, "val": {"step": [2], "loss": [9]}}, [
            {"step": 1, "train/loss": 3}, {"step": 2, "train/loss": 2, "val/loss": 9},
        ]),
        ({"validation_0": {"auc": [0.5]}, "validation_1": {"auc": [0.4]}}, [
            {"step": 0, "train/validation_0/auc": 0.5, "validation_1/auc": 0.4},
        ]),
        ({"validation_0": {"auc": [0.5]}}, [{"step": 0, "validation_0/auc": 0.5}]),
        ({"training": {"auc": [0.5]}, "valid_1": {"auc": [0.4]}}, [
            {"step": 0, "training/auc": 0.5, "valid_1/auc": 0.4},
        ]),
        # steps and values
        ({"loss": {"steps": [0, 10], "values": [2, 1], "timestamps": ["a", "b"]},
          "val.loss": {"steps": [10], "values": [3], "timestamps": ["b"]}}, [
            {"steps": 0, "loss": 2}, {"steps": 10, "loss": 1, "val.loss": 3},
        ]),
        ({"loss": {"train": {"name": "train", "x": [0, 1], "y": [2, 1]}},
          ":monitor:gpu": {"use": {"name": "use", "x": [60], "y": [50]}}}, [
            {"step": 0, "loss/train": 2}, {"step": 1, "loss/train": 1},
        ]),
        ({"loss": {"steps": [0, 10], "values": [2, 1, 0]}}, [
            {"steps": 0, "loss": 2}, {"steps": 10, "loss": 1},
        ]),
    ],
)  # fmt: skip
def test_histories(document: object, expected: Expected) -> None:
    assert [dict(row) for row in history(document)] == expected


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"epoch": 3.0, "eval_loss": 0.4, "train_runtime": 8.0}, "no history, only single values"),
        ({"results": {"task": {"acc": 0.6}}, "config": {"batch_size": 8}}, "no history"),
        ({"lr": 0.1, "betas": [0.9, 0.99], "loss": "mse"}, "no history"),
        ({"accuracy": [0.8, 0.7, 0.9]}, "no history"),  # perhaps of folds
        ({"precision": [1.0, 0.5], "recall": [0.1, 1.0], "thresholds": [0.5]}, "no history"),
        ({"0": {"precision": 0.5}, "1": {"precision": 0.4}}, "no history"),  # classes
        ({"images": [{"id": 1, "width": 3}], "annotations": [{"id": 1, "area": 3}]}, "no history"),
        ([{"text": "a b", "score": 0.5}, {"text": "c d", "score": 0.1}], "samples"),
        ([{"id": 3, "loss": 0.5}, {"id": 4, "loss": 0.4}], "samples"),
        ([{"task": "a", "loss": 0.5}, {"task": "b", "loss": 0.4}], "samples"),
        ([{"fold": 0, "val_loss": 0.5}, {"fold": 1, "val_loss": 0.4}], "samples"),
        ([{"epochs": 9, "val_acc": 0.5}] * 3, "samples"),  # a search for settings
        ([{"tokens": 12, "score": 0.5}, {"tokens": 7, "score": 0.4}], "samples"),
        ([{"loss": 0.5}], "samples"),
        ([1, 2], "samples"),
        ([], "samples"),
        (None, "no history"),
    ],
)
def test_no_history(document: object, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        history(document)


def test_a_file_of_a_series_is_a_row() -> None:
    assert row_of({"loss": 1.0}, "epoch", 3) == [(("epoch", 3), ("loss", 1.0))]
    assert row_of({"step": 7, "loss": 1.0}, "epoch", 3) == [(("step", 7), ("loss", 1.0))]
    for document in ({"width": 3}, [1], {}):
        with pytest.raises(DocumentError):
            row_of(document, "epoch", 3)


def test_too_many_numbers_are_refused_before_they_are_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(METADATA_BYTES, "64KiB")
    with pytest.raises(StorageUnavailableError, match="more than the 65536 that may be read"):
        history({"loss": [0.5] * 1000})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["step", "epoch", "loss", "val", "name", "value", "x", "y", "1", "a/b"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


@given(JSON)
def test_any_document_gives_rows_or_a_sentence(document: object) -> None:
    try:
        rows = history(document)
    except DocumentError:
        return
    assert all(isinstance(name, str) for row in rows for name, _ in row)
    values = [value for row in rows for _, value in row]
    assert all(value is None or isinstance(value, str | int | float) for value in values)


def test_deep_objects_end() -> None:
    document: dict[str, object] = {"loss": [2.0, math.nan]}
    for _ in range(900):
        document = {"a": document}
    with pytest.raises(DocumentError):
        history(document)
