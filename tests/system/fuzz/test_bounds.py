"""Files that change while they are looked at, and the memory that damaged ones may take."""

import os
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
import rawtrial
import victim
from victim import EVENT, GOOD, INDEX, Files, event, index, opened

from smdebug.exceptions import StepUnavailable, TensorDamaged

MEMORY = 4 << 20
ONE = b"\0\0\x80\x3f"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return victim.make(tmp_path)


def test_a_view_outlives_its_file(root: Path) -> None:
    trial = opened(root)
    view = trial.tensor("t").view(1)
    os.truncate(root / EVENT, 0)
    assert view.tolist() == GOOD.tolist()
    (root / EVENT).unlink()
    assert view.tolist() == GOOD.tolist()
    assert not view.flags.writeable


def test_a_file_that_is_cut_between_two_looks_is_damage(root: Path) -> None:
    first = opened(root)
    assert first.tensor("t").value(1).tolist() == GOOD.tolist()
    os.truncate(root / EVENT, 40)
    with pytest.raises(TensorDamaged, match=r"is cut off: expected \d+ bytes at 0, got 40 of them"):
        opened(root).tensor("t").value(1)


def test_a_damaged_tensor_is_asked_again(root: Path) -> None:
    content = (root / EVENT).read_bytes()
    os.truncate(root / EVENT, 40)
    trial = opened(root)
    with pytest.raises(TensorDamaged, match="is cut off"):
        trial.tensor("t").value(1)
    (root / EVENT).write_bytes(content)
    assert trial.tensor("t").value(1).tolist() == GOOD.tolist()


STRINGS = tuple(b"" for _ in range(40_000))
GREEDY: dict[str, Files] = {
    "dimensions": {EVENT: rawtrial.record(event(1, [1] * 500_000, ONE))},
    "one-long-string": {
        EVENT: rawtrial.record(event(0, [10_001], b"", (b"x" * 100_000, *STRINGS[:10_000])))
    },
    "empty-strings": {EVENT: rawtrial.record(event(0, [len(STRINGS)], b"", STRINGS))},
    "shape": {INDEX: index(shape_payload=[{"tensorname": "t", "shape": [1] * 1_000_000}])},
    "span": {INDEX: index(length=2**40)},
    "span-of-a-large-file": {INDEX: index(start_idx=2**21, length=2**40)},
}


def test_many_arrays_of_strings_are_not_kept(root: Path) -> None:
    record = rawtrial.record(event(0, [61], b"", (b"x" * 1000, *STRINGS[:60])))
    payload = [
        {"tensorname": f"s{one}", "start_idx": one * len(record), "length": len(record)}
        for one in range(100)
    ]
    files = {EVENT: record * len(payload), INDEX: index(tensor_payload=payload)}
    trial = opened(rawtrial.write(root, files))
    tracemalloc.start()
    try:
        for one in range(len(payload)):
            assert trial.tensor(f"s{one}").view(1)[0] == "x" * 1000
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < MEMORY


@pytest.mark.parametrize("files", GREEDY.values(), ids=GREEDY)
def test_no_memory_is_taken_that_the_files_do_not_have(files: Files, root: Path) -> None:
    files = dict(files)
    if INDEX not in files:
        files[INDEX] = index(length=len(files[EVENT]))
    rawtrial.write(root, files)
    tracemalloc.start()
    try:
        trial = opened(root)
        with suppress(TensorDamaged, StepUnavailable):
            trial.tensor("t").value(1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = sum(len(content) for content in files.values())
    assert peak < MEMORY + 24 * size
