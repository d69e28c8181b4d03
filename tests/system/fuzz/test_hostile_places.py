"""Hostile collections files, and links and pipes in the place of files."""

import os
from collections.abc import Callable
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
    check_step_0,
    index,
    opened,
)

from rule_core.storage.base import StorageUnavailableError
from smdebug.exceptions import (
    MissingCollectionFiles,
    SMDebugValueError,
    TensorDamaged,
)


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
    pytest.param(rawtrial.collections({}, "x"), id="workers-are-a-word"),
    pytest.param(rawtrial.collections({}, "9" * 5000), id="endless-workers"),
    pytest.param(rawtrial.collections({}, None), id="workers-are-null"),
    pytest.param(b'{"collections": [], "_meta": {"num_workers": 1}}', id="list"),
    pytest.param(b'{"collections": {}, "_meta": {"num_workers": 1}, "x": 1}', id="unknown-key"),
]


@pytest.mark.parametrize("content", COLLECTION_FILES)
def test_a_hostile_collections_file_is_missing(content: bytes, root: Path) -> None:
    (root / COLLECTIONS).write_bytes(content)
    victim.check_step_0(opened(root))
    (root / rawtrial.TRAINING_JOB_END).unlink()
    with pytest.raises(MissingCollectionFiles, match=r"0 of 1 collections files exist"):
        opened(root)


def test_a_collections_file_may_claim_any_number_of_workers(root: Path) -> None:
    (root / COLLECTIONS).write_bytes(rawtrial.collections({}, 10**9))
    with pytest.raises(MissingCollectionFiles, match=r"1 of 1000000000 collections files"):
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
    with pytest.raises(TensorDamaged, match=r"Cannot read 'events/|does not exist"):
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
    assert sorted(trial.index.file_problems.problems) == [
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
    assert [text.isascii() for text in map(repr, trial.index.file_problems.problems)] == [
        True,
        True,
    ]


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
