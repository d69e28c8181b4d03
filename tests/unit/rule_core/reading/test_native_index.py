"""NativeIndex: files that come, are late, bad, strange or too many."""

import json
from typing import Any

import numpy as np
import pytest
import rawtrial
from evaluating import END
from memory_store import MemoryStore

from rule_core.model.reductions import Reduction
from rule_core.modes import ModeKeys
from rule_core.reading import file_problems, saved_tensors
from rule_core.reading.native_index import NativeIndex
from rule_core.storage.base import ObjectNotFoundError


def collections(worker: int = 0, count: Any = 1, **named: Any) -> dict[str, bytes]:
    key = rawtrial.collections_key(f"worker_{worker}")
    return {key: rawtrial.collections({"losses": ["loss"]} | named, count)}


def step(number: int, worker: int = 0, name: str = "loss", **more: Any) -> dict[str, bytes]:
    values = {name: np.float32([number, 2])}
    return rawtrial.step_files(number, values, worker=f"worker_{worker}", **more)


def index(*files: dict[str, bytes], **more: Any) -> tuple[NativeIndex, dict[str, bytes]]:
    result: dict[str, bytes] = {}
    for file in files:
        result |= file
    return NativeIndex(MemoryStore(result), **more), result


def test_settled_is_only_what_was_complete_before_a_listing_began() -> None:
    one, files = index(collections(), step(0), step(3))
    assert one.refresh() is True
    assert (one.last_complete_step, one.settled_step) == (3, -1)
    assert one.refresh() is False
    assert one.settled_step == 3
    files |= step(7)
    one.refresh()
    assert (one.last_complete_step, one.settled_step) == (7, 3)


def test_late_file_behind_settled_steps_is_found_by_a_whole_look_only() -> None:
    one, files = index(collections(0, 2), collections(1, 2), step(0), step(5), step(5, 1))
    one.refresh()
    one.refresh()
    files |= step(0, 1)
    assert one.refresh() is False
    assert one.refresh(whole=True) is True
    assert sorted(one.files[0]) == ["worker_0", "worker_1"]


def test_steps_beyond_twelve_digits_do_not_hide_others() -> None:
    one, files = index(collections(), step(10**12 + 5), step(3))
    for _ in range(3):
        one.refresh()
    files |= step(4)
    assert one.refresh() is True
    assert one.steps == [3, 4, 10**12 + 5]


def test_workers_that_are_learnt_late_complete_steps_late() -> None:
    one, files = index(collections(0, 2), step(0), step(0, 1))
    one.refresh()
    assert (one.num_workers, one.lacks_collections(), one.last_complete_step) == (2, True, 0)
    files |= collections(1, 2)
    one.refresh()
    assert (one.workers, one.lacks_collections()) == (["worker_0", "worker_1"], False)


def test_bad_collections_file_is_asked_again_and_forgotten_when_mended() -> None:
    one, files = index(collections(0, 1))
    key = rawtrial.collections_key()
    whole, files[key] = files[key], b"{"
    one.refresh()
    assert one.lacks_collections()
    assert one.file_problems.problems[key].startswith(f"File '{key}' is cut off")
    files[key] = whole
    one.refresh()
    assert (one.lacks_collections(), one.file_problems.problems) == (False, {})


def test_collections_are_merged_and_read_again_when_names_are_new() -> None:
    one, files = index(collections(0, 2, a=["x"]), collections(1, 2, a=["y"], b=["z"]), step(0))
    files["collections/000000000/notes.txt"] = b"?"
    one.refresh()
    assert sorted(one.collections) == ["a", "b", "losses"]
    assert one.collections["a"].include_regex == ["x", "y"]
    version = one.collections_version
    files |= collections(0, 2, c=["w"]) | step(1)
    one.refresh()
    assert (one.collections_version, "c" in one.collections) == (version, False)
    files |= step(2, name="new")
    one.refresh()
    assert (one.collections_version, "c" in one.collections) == (version + 1, True)


@pytest.mark.parametrize(
    "name", ["x.json", "12_.json", "_w.json", "1_w.txt", "99999999999999999999_w.json"]
)
def test_strange_names_are_reported_once_and_passed_over(name: str) -> None:
    key = f"index/000000000/{name}"
    one, _ = index(collections(), {key: b"{}"})
    one.refresh()
    one.refresh()
    assert (one.steps, one.file_problems.problems) == (
        [],
        {key: "Its name is not <step>_<worker>.json."},
    )


def test_unfinished_files_are_passed_over_without_a_word() -> None:
    one, _ = index(collections(), {"index/000000000/000000000001_worker_0.json.tmp": b""})
    one.refresh()
    assert (one.steps, one.file_problems.problems) == ([], {})


def test_index_file_without_entries_is_no_step() -> None:
    meta = {"mode": "TRAIN", "mode_step": 0}
    data = json.dumps({"meta": meta, "tensor_payload": []}).encode()
    one, _ = index(collections(), {rawtrial.index_key(4): data})
    one.refresh()
    one.refresh()
    assert (one.steps, one.file_problems.problems) == ([], {})


def test_damaged_record_is_reported_and_the_others_are_used() -> None:
    key = rawtrial.index_key(0)
    files = step(0)
    document = json.loads(files[key])
    document["tensor_payload"].append({"tensorname": "bad", "start_idx": -1, "length": 3})
    files[key] = json.dumps(document).encode()
    one, _ = index(collections(), files)
    one.refresh()
    assert list(one.names) == ["loss"]
    assert list(one.file_problems.problems) == [f"{key}: bad"]


def test_problems_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_problems, "PROBLEMS_KEPT", 2)
    one, _ = index(collections(), {f"index/{n}": b"" for n in range(5)})
    one.refresh()
    assert len(one.file_problems.problems) == 2


def test_window_counts_incomplete_steps() -> None:
    sparse = [step(number * 1000) for number in range(1, 6)]
    one, files = index(collections(0, 2), collections(1, 2), step(0), step(0, 1), *sparse, window=4)
    one.refresh()
    assert (one.last_complete_step, one.settled_step) == (2000, 2000)
    files |= step(6000) | step(7000)
    one.refresh()
    assert one.last_complete_step == 4000


def test_window_of_no_steps_waits_for_nobody() -> None:
    one, _ = index(collections(0, 2), collections(1, 2), step(0), step(1), window=0)
    one.refresh()
    assert one.last_complete_step == 1


def test_same_mode_step_twice_is_the_first_global_step_in_any_order() -> None:
    more: dict[str, Any] = {"mode": "TRAIN", "mode_step": 3}
    for order in ((4, 9), (9, 4)):
        one, files = index(collections())
        for number in order:
            files |= step(number, **more)
            one.refresh(whole=True)
        assert one.mode_steps == {ModeKeys.TRAIN: {3: 4}}
        assert one.steps == one.names["loss"] == [4, 9]


def test_workers_that_disagree_about_a_step() -> None:
    one, _ = index(
        collections(0, 2),
        collections(1, 2),
        step(4, mode="TRAIN", mode_step=1),
        step(4, 1, mode="EVAL", mode_step=2),
    )
    one.refresh()
    assert next(iter(one.tensors.modes_at(4).items())) == (ModeKeys.TRAIN, 1)
    assert not one.tensors.modes_at(5)
    assert one.mode_step_at(4, ModeKeys.EVAL) == 2
    assert one.mode_step_at(4, ModeKeys.GLOBAL) == 4
    assert one.tensors.parts_with("loss", 4, ModeKeys.EVAL) == ["worker_1"]
    assert one.tensors.parts_with("loss", 4, ModeKeys.GLOBAL) == ["worker_0", "worker_1"]


def test_more_writers_than_announced_make_a_step_complete() -> None:
    one, _ = index(collections(0, 1), step(0), step(0, 1))
    one.refresh()
    assert one.settled([0])


def test_end_mark_and_finish() -> None:
    one, files = index()
    assert one.has_ended() is False
    files["training_job_end.ts.old"] = b""
    assert one.has_ended() is False
    files[END] = b""
    assert one.has_ended() is True
    one.finish()
    assert (one.loaded_all_steps, one.last_complete_step, one.settled_step) == (True, -1, -1)


def test_reductions_are_kept_for_others_and_their_number_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(saved_tensors, "CACHED_RESULTS", 2)
    one, files = index(collections(), step(0), step(4))
    one.refresh()
    first = one.tensors.measure("loss", 4, "worker_0", Reduction("max"))
    assert (first, one.tensors.measure("loss", 4, "worker_0", Reduction("min"))) == (4.0, 2.0)
    files.clear()
    assert one.tensors.measure("loss", 4, "worker_0", Reduction("max")) is first
    files |= step(0)
    one.tensors.measure("loss", 0, "worker_0", Reduction("sum"))
    assert len(one.tensors._results) == 2


def test_what_was_not_saved_cannot_be_read() -> None:
    key = rawtrial.index_key(0)
    meta = {"mode": "TRAIN", "mode_step": 0}
    shape = {"tensorname": "loss", "shape": [2]}
    data = json.dumps({"meta": meta, "shape_payload": [shape]}).encode()
    one, _ = index(collections(), {key: data})
    one.refresh()
    with pytest.raises(ObjectNotFoundError):
        one.tensors.measure("loss", 0, "worker_0", Reduction("max"))
    with pytest.raises(ObjectNotFoundError):
        one.tensors.value("loss", 0, "worker_0")


def test_collections_file_that_vanished_is_a_problem_at_the_end() -> None:
    one, _ = index(collections(0, 2), step(0), step(0, 1))
    one.refresh()
    assert one.file_problems.problems == {}
    missing = rawtrial.collections_key("worker_1")
    assert one.missing_collections() == [repr(missing)]
    one.finish()
    assert list(one.file_problems.problems) == [missing]
