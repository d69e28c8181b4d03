"""Hostile collections files, links and pipes in the place of files, and bounds of memory."""

import os
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rawtrial
import victim
from victim import (
    COLLECTIONS,
    EVENT,
    GOOD,
    INDEX,
    RECORD,
    Files,
    check_step_0,
    event,
    index,
    opened,
)

from smdebug.exceptions import (
    MissingCollectionFiles,
    SMDebugValueError,
    StepUnavailable,
    TensorDamaged,
)
from smdebug.storage import StorageUnavailableError

MEMORY = 4 << 20
ONE = b"\0\0\x80\x3f"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return victim.make(tmp_path)


# -- collections files --------------------------------------------------------------------------

COLLECTION_FILES = [
    pytest.param(b"", id="empty"),
    pytest.param(b'{"collections": {}', id="cut"),
    pytest.param(b"[" * 1_000_000, id="deep"),
    pytest.param(rawtrial.collections({}, 0), id="no-workers"),
    pytest.param(rawtrial.collections({}, -3), id="negative-workers"),
    pytest.param(rawtrial.collections({}, 10**9), id="very-many-workers"),
    pytest.param(rawtrial.collections({}, "x"), id="workers-are-a-word"),
    pytest.param(rawtrial.collections({}, "9" * 5000), id="endless-workers"),
    pytest.param(rawtrial.collections({}, None), id="workers-are-null"),
    pytest.param(b'{"collections": [], "_meta": {"num_workers": 1}}', id="list"),
    pytest.param(b'{"collections": {}, "_meta": {"num_workers": 1}, "x": 1}', id="unknown-key"),
]


@pytest.mark.parametrize("content", COLLECTION_FILES)
def test_a_hostile_collections_file_is_missing(content: bytes, root: Path) -> None:
    (root / COLLECTIONS).write_bytes(content)
    with pytest.raises(MissingCollectionFiles, match=r"of \d+ collections files are there"):
        opened(root)


PATTERNS = {
    "nested": "(" * 5000 + ")" * 5000,
    "counted": "((((a{100}){100}){100}){100}){100}",
    "long": "(?:" + "a|" * 60_000 + "b){1000}",
    "repeated": "t{99999999999999}",
    "exponential": "(t|tt)+$",
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_hostile_pattern_costs_its_collection(pattern: str, root: Path) -> None:
    long_name = "t" * 60 + "!"
    rawtrial.write(root, rawtrial.step_files(1, {"t": GOOD, long_name: GOOD}))
    content = rawtrial.collections({"bad": [pattern], "good": ["^t$"]})
    (root / COLLECTIONS).write_bytes(content)
    trial = opened(root)
    assert trial.tensor_names(collection="good") == ["t"]
    with pytest.raises(SMDebugValueError, match=r"^Pattern '.*\.$"):
        trial.tensor_names(collection="bad")


# -- things in the place of files ---------------------------------------------------------------


def symlink_outside(path: Path) -> None:
    path.symlink_to(path.parents[3] / "outside")


def symlink_inside(path: Path) -> None:
    moved = path.with_name("moved")
    moved.write_bytes(RECORD)
    path.symlink_to(moved)


def dangling_symlink(path: Path) -> None:
    path.symlink_to("nowhere")


def symlink_to_itself(path: Path) -> None:
    path.symlink_to(path)


def folder_outside(path: Path) -> None:
    """Put a link in the place of the file's folder."""
    outside = path.parents[3] / "folder"
    outside.mkdir()
    (outside / path.name).write_bytes(RECORD)
    path.parent.rename(path.parent.with_name("gone"))
    path.parent.symlink_to(outside, target_is_directory=True)


PLACES: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo,
    "folder": os.mkdir,
    "link-outside": symlink_outside,
    "link-inside": symlink_inside,
    "dangling-link": dangling_symlink,
    "loop": symlink_to_itself,
    "folder-outside": folder_outside,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_regular_event_file_costs_its_tensors(place: Callable[[Path], None], root: Path) -> None:
    (root / EVENT).unlink()
    place(root / EVENT)
    trial = opened(root)
    check_step_0(trial)
    with pytest.raises(TensorDamaged, match=r"Cannot read 'events/|is not there"):
        trial.tensor("t").value(1)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_regular_index_file_costs_its_step(place: Callable[[Path], None], root: Path) -> None:
    # Step 1000 lies in a folder of its own.
    rawtrial.write(root, rawtrial.step_files(1000, {"t": GOOD}))
    key = rawtrial.index_key(1000)
    (root / key).unlink()
    place(root / key)
    trial = opened(root)
    assert trial.steps() == [0, 1]
    check_step_0(trial)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_no_regular_collections_file_is_missing(place: Callable[[Path], None], root: Path) -> None:
    (root / COLLECTIONS).unlink()
    place(root / COLLECTIONS)
    missing = (MissingCollectionFiles, StorageUnavailableError)
    with pytest.raises(missing, match=r"0 of 1 collections files|links inside a trial are not"):
        opened(root)


@pytest.mark.parametrize("place", [os.mkdir, symlink_outside], ids=["folder", "link"])
def test_a_folder_or_a_link_is_no_end_mark(place: Callable[[Path], None], root: Path) -> None:
    mark = root / rawtrial.TRAINING_JOB_END
    mark.unlink()
    if place is os.mkdir:
        place(mark)
        assert not opened(root).index.has_ended()
    else:
        mark.symlink_to(root.parent / "outside")
        opened(root).steps()


def test_a_very_deep_folder_is_passed_over(root: Path) -> None:
    content = (root / INDEX).read_bytes()
    rawtrial.write(
        root,
        {
            f"index/{'d/' * 5}000000000005_worker_0.json": content,
            f"index/{'d/' * 100}000000000006_worker_0.json": content,
        },
    )
    trial = opened(root)
    assert trial.steps() == [0, 1, 5]


def test_files_that_are_none_of_the_format_are_passed_over(root: Path) -> None:
    rawtrial.write(
        root,
        {
            "index/readme.txt": b"hello",
            "index/000000000/x_worker_0.json": b"{}",
            "index/000000000/99999999999999999999_worker_0.json": b"{}",
            "index/000000000/000000000007_worker_0.json.tmp": b'{"meta"',
            "index_old/000000000/000000000009_worker_0.json": b"{}",
            "collections/000000000/readme.txt": b"",
        },
    )
    trial = opened(root)
    assert trial.steps() == [0, 1]
    assert sorted(trial.index.problems) == [
        "index/000000000/99999999999999999999_worker_0.json",
        "index/000000000/x_worker_0.json",
        "index/readme.txt",
    ]


def test_names_that_are_no_text_are_passed_over(root: Path) -> None:
    folder = os.fsencode(root / "index" / "000000000")
    for name in (b"000000000009_\xff.json", b"\xff_worker_0.json"):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(index())
    (root / "collections/000000000" / "\udcff_collections.json").write_bytes(b"{}")
    trial = opened(root)
    assert trial.steps() == [0, 1]
    assert trial.workers() == ["worker_0"]
    assert [text.isascii() for text in map(repr, trial.index.problems)] == [True, True]


def test_many_patterns_of_two_workers_are_merged(root: Path) -> None:
    for worker, patterns in {"worker_0": range(40_000), "worker_1": range(20_000, 60_000)}.items():
        content = rawtrial.collections({"many": [f"p{one}" for one in patterns]})
        rawtrial.write(root, {rawtrial.collections_key(worker): content})
    merged = opened(root).collection("many").include_regex
    assert sorted(merged) == sorted(f"p{one}" for one in range(60_000))


def test_a_file_with_holes_larger_than_memory_is_damage(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = np.empty

    def limited(size: int, *args: Any, **kwargs: Any) -> Any:
        if size > 2**30:
            raise MemoryError
        return empty(size, *args, **kwargs)

    monkeypatch.setattr(np, "empty", limited)
    os.truncate(root / EVENT, 2**40)
    (root / INDEX).write_bytes(index(start_idx=0, length=2**39))
    trial = opened(root)
    message = rf"Cannot read '{EVENT}': no memory for {2**39} bytes of it\.$"
    with pytest.raises(TensorDamaged, match=message):
        trial.tensor("t").value(1)
    check_step_0(trial)


# -- while it is looked at ----------------------------------------------------------------------


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


# -- memory -------------------------------------------------------------------------------------

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
