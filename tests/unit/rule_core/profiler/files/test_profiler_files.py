"""Which files there are, as they come, and which may hold the data of a range of time."""

from collections.abc import Iterator
from pathlib import Path

import profiler_writer as writer
import pytest
from memory_store import MemoryStore

from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.files.constants import time_buffer_us, trailing_duration_us
from rule_core.profiler.files.file_problems import ProfilerFileProblems
from rule_core.profiler.files.profiler_files import ProfilerFiles
from rule_core.storage.base import ReadCosts, TrialStore
from rule_core.storage.local import LocalStore

S = 1_000_000
MINUTE = 60


def system(*minutes: int, node: str = "algo-1") -> dict[str, bytes]:
    return {writer.key(writer.BEGIN_S + MINUTE * one, node): b"" for one in minutes}


def traces(*ends_s: int, node: str = "1-algo-1") -> dict[str, bytes]:
    stamps = [(writer.BEGIN_S + one) * S for one in ends_s]
    return {f"framework/pevents/x/{one}_{node}_pythontimeline.json": b"" for one in stamps}


def unlisted(store: TrialStore) -> ProfilerFiles:
    return ProfilerFiles(store, ProfilerFileProblems("memory://job"))


def files(found: dict[str, bytes]) -> ProfilerFiles:
    listed = unlisted(MemoryStore(found))
    listed.refresh()
    return listed


def minutes(stamps: list[int]) -> list[float]:
    return [(one - writer.BEGIN_US) / MINUTE / S for one in stamps]


def test_new_files_are_reported_once() -> None:
    there = system(0) | traces(5)
    found = unlisted(MemoryStore(there))
    assert [len(one) for one in found.refresh()] == [1, 1]
    assert [len(one) for one in found.refresh()] == [0, 0]
    there |= system(1, 2, node="algo-2") | traces(4)
    assert [len(one) for one in found.refresh()] == [2, 1]
    assert sorted(found.system) == ["algo-1", "algo-2"]
    ends = found.traces["pythontimeline.json", "1-algo-1"]
    assert [one.end_us for one in ends] == [(writer.BEGIN_S + 4) * S, (writer.BEGIN_S + 5) * S]


@pytest.mark.parametrize("folder", ["", "system/", "framework/"])
def test_an_end_mark_in_each_documented_folder_ends_the_job(folder: str) -> None:
    there = system(0)
    found = files(there)
    assert not found.has_end_mark()
    there[f"{folder}training_job_end.ts"] = b""
    assert found.has_end_mark()
    found.refresh()
    assert found.ended


def test_the_end_mark_of_tensors_does_not_end_a_profile_beside_them() -> None:
    there = {
        "collections/000000000/worker_0_collections.json": b"{}",
        "training_job_end.ts": b"",
    }
    found = files(there)
    assert found.has_end_mark()  # nothing is profiled
    there |= system(0)
    found.refresh(ended=False)
    assert not found.has_end_mark()


def test_a_folder_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    found = unlisted(LocalStore(tmp_path / "later"))
    assert found.refresh() == ([], [])
    assert not found.has_end_mark()


def test_system_files_of_a_range_by_node() -> None:
    # The second node writes one file for a long time.
    found = files(system(*range(20)) | system(0, 19, node="algo-2"))
    start, end = ((writer.BEGIN_S + at * MINUTE) * S for at in (9, 10))
    chosen = found.system_between(start, end)
    first = [one.start_us for one in chosen if one.node == "algo-1"]
    second = [one.start_us for one in chosen if one.node == "algo-2"]
    assert minutes(first) == [6, 7, 8, 9, 10, 11, 12, 13]
    assert minutes(second) == [0, 19]
    assert chosen == sorted(chosen)


def test_timelines_of_a_range_by_writer() -> None:
    found = files(traces(*range(60, 1200, 60)) | traces(1, 1199, node="2-algo-2"))
    start, end = ((writer.BEGIN_S + at * MINUTE) * S for at in (9, 10))
    chosen = found.traces_between(start, end)
    first = [one.end_us for one in chosen if one.node == "1-algo-1"]
    assert minutes(first) == [6, 7, 8, 9, 10, 11, 12, 13]
    second = [one.end_us for one in chosen if one.node == "2-algo-2"]
    assert second == [(writer.BEGIN_S + 1199) * S]


def test_the_environment_sets_by_how_much_a_range_is_widened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TIME_BUFFER_MICROSECONDS", "0")
    found = files(system(*range(20)))
    start, end = ((writer.BEGIN_S + at * MINUTE) * S for at in (9, 10))
    assert minutes([one.start_us for one in found.system_between(start, end)]) == [9, 10]
    assert minutes([one.start_us for one in found.system_between(start + 1, end + 1)]) == [
        9,
        10,
        11,
    ]
    assert found.system_between(0, 1)[0].start_us == writer.BEGIN_US
    assert unlisted(MemoryStore({})).system_between(0, 1) == []


def test_numbers_of_the_environment() -> None:
    assert (time_buffer_us({}), trailing_duration_us({})) == (180 * S, 300 * S)
    given = {"TIME_BUFFER_MICROSECONDS": " 5.5 ", "TRAILING_DURATION_MICROSECONDS": "7"}
    assert (time_buffer_us(given), trailing_duration_us(given)) == (5, 7)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_what_is_no_number_is_an_error(text: str) -> None:
    with pytest.raises(
        SMDebugValueError,
        match=r"TIME_BUFFER_MICROSECONDS must be a number of microseconds >= 0, got '",
    ):
        time_buffer_us({"TIME_BUFFER_MICROSECONDS": text})
    with pytest.raises(SMDebugValueError, match="TRAILING_DURATION_MICROSECONDS"):
        trailing_duration_us({"TRAILING_DURATION_MICROSECONDS": text})


class Remote(MemoryStore):
    """Remembers behind which keys it was asked for new ones."""

    costs = ReadCosts(parallel=8)

    def __init__(self, found: dict[str, bytes]) -> None:
        super().__init__(found)
        self.asked: list[str] = []

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        if prefix == "system/":
            self.asked.append(start_after)
        return super().list_keys(prefix, start_after=start_after)


def test_a_remote_listing_begins_a_while_before_the_newest_file() -> None:
    there = system(*range(10))
    store = Remote(there)
    found = unlisted(store)
    found.refresh()
    there |= system(10)
    there |= system(5, node="algo-2") | system(1, node="algo-3")
    new, _ = found.refresh()
    assert store.asked == ["", writer.key(writer.BEGIN_S + 3 * MINUTE)]
    assert [one.node for one in new] == ["algo-2", "algo-1"]  # the third is too late for it
    new, _ = found.refresh(whole=True)
    assert (store.asked[-1], [one.node for one in new]) == ("", ["algo-3"])


def test_at_the_end_everything_is_looked_for() -> None:
    there = system(*range(10))
    store = Remote(there)
    found = unlisted(store)
    found.refresh()
    there |= system(1, node="algo-3") | writer.END
    new, _ = found.refresh()
    assert [one.node for one in new] == ["algo-3"]


def test_names_out_of_the_order_of_time_are_listed_whole() -> None:
    early = writer.key(writer.BEGIN_S).replace("incremental", "zzz")
    store = Remote({early: b""} | system(*range(1, 10)))
    found = unlisted(store)
    found.refresh()
    found.refresh()
    assert store.asked == ["", ""]


def test_the_newest_file_of_a_node_grows_until_the_end() -> None:
    there = system(0, 1)
    found = files(there)
    assert [found.is_growing(one) for one in found.system["algo-1"]] == [False, True]
    there |= writer.END
    found.refresh()
    assert [found.is_growing(one) for one in found.system["algo-1"]] == [False, False]
