"""Histories in .npz files: columns, means of evaluations, pickles, bombs and damage."""

import io
import zipfile
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_files import Followed, read, recognized

from rule_core.sources.documents.document_source import DocumentError
from rule_core.sources.documents.npz_document import FORMAT, decode
from rule_core.sources.format import HEAD_BYTES, SourceFolder, Unreadable
from rule_core.storage.base import StorageUnavailableError


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


HISTORY = npz(
    train_loss=np.array([2.0, np.nan]), val_loss=np.array([3, 2], np.float32), name=np.array("a")
)


def folder(data: bytes) -> SourceFolder:
    return SourceFolder(
        "", ["a.npz"], lambda _: (), lambda _: data[:HEAD_BYTES], tail=lambda _: data[-HEAD_BYTES:]
    )


def test_arrays_of_equal_length_are_columns() -> None:
    assert repr(read(FORMAT, HISTORY)) == repr(
        {"train_loss": [("0", 2.0), ("1", np.nan)], "val_loss": [("0", 3.0), ("1", 2.0)]}
    ).replace("np.float64", "")


def test_evaluations_of_stable_baselines3_are_means() -> None:
    results = np.asfortranarray([[1.0, 2.0, 6.0], [4.0, 4.0, 7.0]])
    lengths = np.array([[[10], [20], [30]], [[1], [1], [4]]])
    data = npz(timesteps=np.array([100, 200]), results=results, ep_lengths=lengths)
    assert read(FORMAT, data) == {
        "eval/mean_reward": [("100", 3.0), ("200", 5.0)],
        "eval/mean_ep_length": [("100", 20.0), ("200", 2.0)],
    }


def test_compressed_arrays() -> None:
    file = io.BytesIO()
    np.savez_compressed(file, loss=np.zeros((3, 2), ">f4"))
    assert decode(file.getvalue()) == {"loss": [0.0, 0.0, 0.0]}


def test_pickles_are_never_opened() -> None:
    (refused,) = FORMAT.recognize(folder(npz(loss=np.array([{}], object))))
    assert isinstance(refused, Unreadable)
    assert "pickled objects, which are never opened" in refused.reason


def test_a_bomb_is_refused_before_it_is_read() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("loss.npy", bytes(300 << 20))
    followed = Followed(FORMAT, "log", {"log": file.getvalue()})
    assert followed.end() == {}
    assert "more than the" in "".join(followed.problems)


def test_the_shape_of_a_header_allocates_nothing() -> None:
    data = npz(loss=np.zeros(10)).replace(b"(10,), }" + b" " * 9, b"(1000000000000,),", 1)
    with pytest.raises(DocumentError, match="cannot be read"):
        decode(data)


def test_what_is_recognized() -> None:
    large = npz(x=np.zeros(20_000), val_loss=np.zeros(20_000))
    images = npz(x_train=np.zeros(20_000), y_train=np.zeros(20_000))
    for data, is_history in ((HISTORY, True), (large, True), (images, False)):
        items = [
            item for item in FORMAT.recognize(folder(data)) if not isinstance(item, Unreadable)
        ]
        assert bool(items) is is_history
    assert recognized(FORMAT, {"a.npz": b"no zip", "b.txt": HISTORY}) == []


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, len(HISTORY) - 1), st.integers(0, 255)), max_size=5))
def test_damage_is_a_sentence(damages: list[tuple[int, int]]) -> None:
    data = bytearray(HISTORY)
    for place, byte in damages:
        data[place] = byte
    with suppress(DocumentError, StorageUnavailableError):
        decode(bytes(data))
