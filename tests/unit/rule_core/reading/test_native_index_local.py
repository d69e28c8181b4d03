"""NativeIndex in a local folder: what a look at it reads, and what it finds again."""

from pathlib import Path

import numpy as np
import pytest
import rawtrial
from memory_store import MemoryStore

from rule_core.reading.native_index import NativeIndex
from rule_core.storage.base import ObjectNotFoundError
from rule_core.storage.local import LocalStore
from rule_core.storage.local_folder import LocalFolder

COLLECTIONS = {rawtrial.collections_key(): rawtrial.collections({"losses": ["loss"]})}


def step(number: int, worker: int = 0) -> dict[str, bytes]:
    return rawtrial.step_files(number, {"loss": np.float32([1])}, worker=f"worker_{worker}")


def opened(root: Path, *files: dict[str, bytes]) -> NativeIndex:
    for one in ({}, *files):
        rawtrial.write(root, COLLECTIONS | one)
    result = NativeIndex(LocalStore(root))
    result.refresh()
    return result


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the keys of the index files that are read, as they are."""
    keys: list[str] = []
    original = LocalFolder.read

    def noted(self: LocalFolder, name: str) -> memoryview | bytes:
        keys.append(self.key + name)
        return original(self, name)

    monkeypatch.setattr(LocalFolder, "read", noted)
    return keys


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders that are listed, as they are."""
    keys: list[str] = []
    original = LocalFolder.__init__

    def noted(self: LocalFolder, key: str, *more: object) -> None:
        keys.append(key)
        original(self, key, *more)  # type: ignore[arg-type]  # passed on as they come

    monkeypatch.setattr(LocalFolder, "__init__", noted)
    return keys


def test_each_index_file_is_read_once(tmp_path: Path, read: list[str]) -> None:
    one = opened(tmp_path, step(0), step(1), step(1000))
    assert read == [rawtrial.index_key(number) for number in (0, 1, 1000)]
    read.clear()
    for whole in (False, True, True):
        assert one.refresh(whole=whole) is False
    assert read == []
    rawtrial.write(tmp_path, step(1001))
    assert one.refresh() is True
    assert (read, one.steps) == ([rawtrial.index_key(1001)], [0, 1, 1000, 1001])


def test_a_refresh_lists_no_folder_behind_the_settled_steps(
    tmp_path: Path, listed: list[str]
) -> None:
    one = opened(tmp_path, *(step(number * 1000) for number in range(5)))
    one.refresh()
    listed.clear()
    rawtrial.write(tmp_path, step(4001))
    assert one.refresh() is True
    assert listed == ["index/000000004/"]
    listed.clear()
    rawtrial.write(tmp_path, step(5000))
    one.refresh()
    assert listed == ["index/000000004/", "index/000000005/"]


def test_a_late_file_is_found_by_a_whole_look(tmp_path: Path) -> None:
    one = opened(tmp_path, step(0), step(1000))
    one.refresh()
    rawtrial.write(tmp_path, step(3))
    assert one.refresh() is False
    assert one.refresh(whole=True) is True
    assert one.steps == [0, 3, 1000]


def test_a_file_that_gets_its_name_after_a_look_is_found(tmp_path: Path) -> None:
    """The number of names in the folder stays the same."""
    one = opened(tmp_path, step(0))
    draft = tmp_path / (rawtrial.index_key(1) + ".tmp")
    draft.write_bytes(step(1)[rawtrial.index_key(1)])
    one.refresh(whole=True)
    draft.rename(tmp_path / rawtrial.index_key(1))
    assert one.refresh(whole=True) is True
    assert one.steps == [0, 1]


def test_a_slow_worker_is_found_behind_steps_that_others_wrote(tmp_path: Path) -> None:
    collections = {
        rawtrial.collections_key(f"worker_{worker}"): rawtrial.collections({}, 2)
        for worker in range(2)
    }
    one = opened(tmp_path, collections, step(0), step(0, 1), *map(step, (900, 999, 1500, 2000)))
    one.refresh()
    one.refresh()
    assert (one.num_workers, one.settled_step) == (2, 0)
    rawtrial.write(tmp_path, step(900, 1) | step(1500, 1))
    assert one.refresh() is True
    assert [sorted(one.files[n]) for n in (900, 1500)] == [["worker_0", "worker_1"]] * 2


def test_a_bad_file_is_read_again_although_its_folder_is_as_it_was(
    tmp_path: Path, read: list[str]
) -> None:
    key = rawtrial.index_key(0)
    one = opened(tmp_path, {**step(0), key: b"{"}, step(1))
    assert one.file_problems.problems[key].startswith(f"File '{key}' is cut off")
    read.clear()
    assert one.refresh(whole=True) is False
    assert read == [key]
    rawtrial.write(tmp_path, step(0))
    assert one.refresh(whole=True) is True
    assert (one.steps, one.file_problems.problems) == ([0, 1], {})
    read.clear()
    assert one.refresh(whole=True) is False
    assert read == []


def test_an_unreadable_folder_is_reported_and_no_empty_trial(tmp_path: Path) -> None:
    trial_files = NativeIndex(LocalStore(tmp_path / "no"))
    with pytest.raises(ObjectNotFoundError, match="/no' does not exist"):
        trial_files.refresh()


def test_settled_steps_are_those_that_each_is() -> None:
    store = MemoryStore(
        {
            rawtrial.collections_key(f"worker_{trial_index}"): rawtrial.collections({}, 2)
            for trial_index in (0, 1)
        }
        | {**step(0), **step(2), **step(2, 1), **step(5), **step(6)}
    )
    trial_index = NativeIndex(store)
    assert trial_index.settled([]) == []
    trial_index.refresh()
    for last in (-1, 2, 5):
        trial_index.last_complete_step = last
        assert trial_index.settled(trial_index.steps) == [
            number for number in trial_index.steps if trial_index.settled([number])
        ]
    trial_index.finish()
    assert trial_index.settled([0, 5]) == [0, 5]


def test_nothing_is_settled_while_nobody_knows_how_many_workers_there_are() -> None:
    one = NativeIndex(MemoryStore(step(0)))
    one.refresh()
    assert one.settled(one.steps) == []


def part(number: int, mode: str, worker: str = "worker_0") -> dict[str, bytes]:
    return rawtrial.step_files(number, {"loss": np.float32([1])}, mode, number, worker)


def test_a_step_of_several_modes_is_complete_once_the_next_begins(tmp_path: Path) -> None:
    files = opened(tmp_path, part(0, "TRAIN"), part(0, "EVAL", "worker_0@EVAL"), part(1, "TRAIN"))
    assert (files.last_complete_step, files.settled_step) == (0, -1)
    rawtrial.write(tmp_path, part(1, "EVAL", "worker_0@EVAL"))
    files.refresh()
    assert (files.last_complete_step, files.settled_step) == (0, 0)
    assert files.settled([0, 1]) == [0]
    rawtrial.write(tmp_path, part(2, "TRAIN"))
    files.refresh()
    assert files.last_complete_step == 1
    assert not files.late_parts
    files.finish()
    assert (files.last_complete_step, files.workers, files.num_workers) == (2, ["worker_0"], 1)


def test_a_mode_that_comes_after_its_step_was_settled_is_late(tmp_path: Path) -> None:
    files = opened(tmp_path, part(0, "TRAIN"), part(1, "TRAIN"))
    files.refresh()
    assert files.settled_step == 1
    rawtrial.write(tmp_path, part(1, "EVAL", "worker_0@EVAL"))
    files.refresh()
    assert [*files.late_parts] == [1]
    assert [*files.files[1]] == ["worker_0", "worker_0@EVAL"]


def test_every_worker_must_have_passed_a_step_of_several_modes(tmp_path: Path) -> None:
    both = {
        rawtrial.collections_key(f"worker_{rank}"): rawtrial.collections({}, 2) for rank in (0, 1)
    }
    first = part(0, "TRAIN") | part(0, "EVAL", "worker_0@EVAL") | part(1, "TRAIN")
    files = opened(tmp_path, both, first)
    assert (files.last_complete_step, files.missing_collections()) == (-1, [])
    rawtrial.write(tmp_path, part(0, "TRAIN", "worker_1"))
    files.refresh()
    assert files.last_complete_step == -1
    rawtrial.write(tmp_path, part(1, "TRAIN", "worker_1"))
    files.refresh()
    assert files.last_complete_step == 0
