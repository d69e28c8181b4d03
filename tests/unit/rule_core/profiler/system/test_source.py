"""Samples of a range of time: from which files, how often they are read, and what is wrong."""

import math

import profiler_writer as writer
import pytest
from memory_store import MemoryStore
from profiler_writer import BEGIN_S, BEGIN_US, MINUTE_US

from rule_core.profiler.files.file_problems import ProfilerFileProblems
from rule_core.profiler.files.profiler_files import ProfilerFiles
from rule_core.profiler.system import source as system_source
from rule_core.profiler.system.samples import SystemSamples
from rule_core.profiler.system.source import SystemSource
from rule_core.storage.base import (
    ByteRange,
    ObjectNotFoundError,
    ReadCosts,
    StorageUnavailableError,
)


class Store(MemoryStore):
    """Counts reads, and rejects the keys of the test."""

    def __init__(self, files: dict[str, bytes], parallel: int = 1) -> None:
        super().__init__(files)
        self.costs = ReadCosts(parallel=parallel)
        self.reads: list[str] = []
        self.refused: dict[str, Exception] = {}

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        self.reads.append(key)
        if key in self.refused:
            raise self.refused[key]
        return super().read(key, byte_range)


class Made:
    """A source over a store, and its parts."""

    def __init__(self, files: dict[str, bytes], parallel: int = 1, **more: float) -> None:
        self.store = Store(files, parallel)
        self.files = ProfilerFiles(self.store, ProfilerFileProblems("job"))
        self.source = SystemSource(self.files, **more)
        self.files.refresh()

    def samples(self, first: float = 0, last: float = 1000) -> SystemSamples:
        """Return the samples between two minutes of the job."""
        return self.source.samples(
            BEGIN_US + round(first * MINUTE_US), BEGIN_US + round(last * MINUTE_US)
        )


def job(minutes: int = 20, nodes: int = 1, **more: float) -> dict[str, bytes]:
    """Return the files of a job: a sample a second, whose value is the second."""
    seconds = range(60 * minutes)
    series = [
        writer.cpu(seconds, node=f"algo-{one}", every_s=1.0, **more) for one in range(1, nodes + 1)
    ]
    return writer.files(*series)


@pytest.mark.parametrize("parallel", [1, 4])
def test_samples_from_the_start_up_to_the_end(parallel: int) -> None:
    found = Made(job(nodes=2), parallel).samples(5, 6)
    assert len(found) == 120
    assert found.value.tolist()[:4] == [300.0, 300.0, 301.0, 301.0]
    assert found.time_us.tolist()[-1] == BEGIN_US + 359 * 1_000_000
    assert [found.keys[one].node for one in found.series[:2]] == ["algo-1", "algo-2"]


def test_only_files_near_the_range_are_read() -> None:
    made = Made(job(60))
    made.samples(30, 31)
    minutes = [(int(key.split("/")[3][:10]) - BEGIN_S) // 60 for key in made.store.reads]
    assert minutes == [27, 28, 29, 30, 31, 32, 33, 34]


def test_a_walk_over_windows_reads_each_file_once() -> None:
    made = Made(job(30, nodes=2) | writer.END)
    total = sum(len(made.samples(at, at + 1)) for at in range(30))
    assert total == 2 * 30 * 60
    assert len(made.store.reads) == len(set(made.store.reads)) == 60


def test_a_small_cache_reads_again_only_what_the_window_needs() -> None:
    made = Made(job(30) | writer.END, cached_bytes=0)
    for at in range(30):
        made.samples(at, at + 1)
    # Once to learn from when to when it reaches, once for its window, and once for its border.
    assert max(map(made.store.reads.count, made.store.reads)) == 3


def test_with_an_endless_cache_nothing_is_read_again() -> None:
    made = Made(job(30) | writer.END, cached_bytes=math.inf)
    made.samples()
    made.samples()
    assert len(made.store.reads) == 30


def test_a_growing_file_is_read_again_at_the_next_look() -> None:
    files = job(2)
    last = max(files)
    whole = files[last]
    files[last] = whole[: len(whole) // 2]
    made = Made(files)
    before = len(made.samples())
    files[last] = whole
    assert len(made.samples()) == before
    made.files.refresh()
    assert (before < 120, len(made.samples())) == (True, 120)
    assert made.files.problems.problems == {}
    assert made.store.reads.count(min(files)) == 1


def test_an_older_file_that_ends_within_a_line_may_still_come_whole() -> None:
    files = job(2)
    first = min(files)
    whole, files[first] = files[first], files[first][:-9]
    made = Made(files)
    assert (len(made.samples()), made.files.problems.count) == (119, 0)
    files[first] = whole
    made.files.refresh()
    assert len(made.samples()) == 120


def test_at_the_end_a_cut_off_file_is_damaged() -> None:
    files = job(2) | writer.END
    last = max(job(2))
    files[last] = files[last][:-9]
    made = Made(files)
    for _ in range(2):
        assert (len(made.samples()), made.files.problems.count) == (119, 1)
    assert made.files.problems.problems == {last: "It is cut off within its last line."}


def test_bad_lines_are_counted_once_however_often_they_are_read() -> None:
    files = job(2)
    first = min(files)
    files[first] = b"{}\n[]\n" + files[first]
    made = Made(files, cached_bytes=0)
    for _ in range(3):
        assert (len(made.samples()), made.files.problems.count) == (120, 2)
    assert list(made.files.problems.problems) == [first]
    assert made.files.problems.problems[first].startswith(
        "2 of 62 lines are no system metrics; line 1: "
    )


def test_a_file_that_cannot_be_read_is_damaged_and_the_others_are_read() -> None:
    made = Made(job(2))
    first, second = sorted(made.store.files)
    made.store.refused[first] = StorageUnavailableError(first, "it is not a regular file")
    made.store.refused[second] = ObjectNotFoundError(second)
    assert (len(made.samples()), made.files.problems.count) == (0, 2)
    assert "not a regular file" in made.files.problems.problems[first]
    del made.store.refused[first]
    assert (len(made.samples()), made.files.problems.count) == (60, 1)


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_store_that_cannot_be_asked_is_an_error(parallel: int) -> None:
    made = Made(job(2), parallel)
    first = min(made.store.files)
    made.store.refused[first] = StorageUnavailableError(first, "busy", transient=True)
    with pytest.raises(StorageUnavailableError, match="busy"):
        made.samples()


def test_samples_of_two_files_that_overlap_count_once() -> None:
    files = job(2)
    first, second = sorted(files)
    files[second] = files[first] + files[second] + writer.line(7.5, BEGIN_S + 30.0)
    copy = first.replace("incremental", "copied")
    files[copy] = files[first]
    found = Made(files).samples()
    assert len(found) == 121
    assert found.value[30:32].tolist() == [30.0, 7.5]
    assert (found.time_us[1:] >= found.time_us[:-1]).all()


def test_a_clock_that_jumps_back_leaves_samples_in_their_order_of_time() -> None:
    early = writer.files(writer.cpu(range(60), every_s=1.0), begin_s=BEGIN_S + 60)
    late = b"".join(writer.line(-at, BEGIN_S + 90.5 + at) for at in range(20))
    found = Made(early | {writer.key(BEGIN_S): late}).samples()
    assert len(found) == 80
    assert (found.time_us[1:] >= found.time_us[:-1]).all()


def test_percentages_above_a_hundred_are_left_as_they_are() -> None:
    assert Made(writer.files(writer.gpu([101.5]))).samples().value.tolist() == [101.5]


def test_no_files_and_no_samples() -> None:
    assert len(Made({}).samples()) == 0
    made = Made({writer.key(BEGIN_S): b""} | writer.END)
    assert (len(made.samples()), len(made.samples()), len(made.store.reads)) == (0, 0, 1)


def test_as_events_both_ends_count_and_nanoseconds_decide() -> None:
    lines = [writer.line(at, BEGIN_S + at / 10) for at in range(10)]
    made = Made({writer.key(BEGIN_S): b"".join(lines)})
    start, end = BEGIN_US + 200_000, BEGIN_US + 500_000
    found = [one.value.tolist() for one in made.source.columns(start, end)]
    inside = [
        at for at in range(10) if start * 1000 <= int((BEGIN_S + at / 10) * 10**9) <= end * 1000
    ]
    assert found == [inside]
    assert list(made.source.columns(start, end, ["algo-2.json"])) == []
    assert len(list(made.source.columns(start, end, ["x", ".json"]))) == 1


def test_a_file_of_several_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_source, "CHUNK", 100)
    monkeypatch.setattr("rule_core.profiler.system.columns.CHUNK", 100)
    for parallel in (1, 4):
        assert len(Made(job(1), parallel).samples()) == 60


def test_more_files_than_are_on_their_way_at_once() -> None:
    made = Made(job(100), 2)
    assert len(made.samples()) == 6000
    assert len(made.store.reads) == 100


def test_the_time_of_the_last_sample() -> None:
    made = Made(job(2))
    assert made.source.last_time_us(made.files.system["algo-1"]) == BEGIN_US + 119 * 1_000_000
    assert made.source.last_time_us([]) == 0


def test_a_selection_of_samples() -> None:
    files = writer.files(
        writer.cpu([1.0]), writer.cpu([2.0], node="algo-2"), writer.gpu([3.0]), writer.gpu([4.0])
    )
    found = Made(files).samples()
    assert found.of("CPUUtilization").value.tolist() == [1.0, 2.0]
    assert found.of(node="algo-1").value.tolist() == [1.0, 3.0, 4.0]
    assert found.of("CPUUtilization", "algo-2", "cpu").value.tolist() == [2.0]
    assert len(found.of("CPU")) == len(found.of(type="gp")) == 0
    assert found.of("GPUUtilization").keys is found.keys
    assert len(Made({}).samples().of("CPUUtilization")) == 0
