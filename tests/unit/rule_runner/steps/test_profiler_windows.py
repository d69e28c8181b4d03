"""WindowWalk: the windows of profiler data that can be judged, live and afterwards."""

import json
from collections.abc import Iterator

import pytest
from evaluating import WoundClock
from faulty_store import REMOTE, CountingStore
from memory_store import MemoryStore
from profiler_writer import BEGIN_S, END, minute

from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_runner.results.schema import WindowTimes
from rule_runner.steps.profiler_windows import ProfilerPoller, ProfilerWindows
from smdebug.trials.profiler_trial import ProfilerTrial

MINUTE = 60_000_000


class Breaking(CountingStore):
    """Raises what a test sets."""

    error: Exception | None = None

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        if self.error is not None:
            raise self.error
        return super().list_keys(prefix, start_after=start_after)


class Followed:
    """Profiler data in memory, and sources over them."""

    def __init__(self, *lengths: int, remote: bool = False) -> None:
        self.files: dict[str, bytes] = {}
        memory = MemoryStore(self.files, "p0")
        self.store = Breaking(memory, REMOTE) if remote else Breaking(memory)
        self.clock = WoundClock(BEGIN_S + 3600.0)
        self.trial = ProfilerTrial.over(self.store, "p", "p0", clock=self.clock)
        self.following = ProfilerPoller(self.trial, self.clock, end_grace=1.0, poll_max=10.0)
        self.sources = [
            ProfilerWindows(self.following, length, leads=not number)
            for number, length in enumerate(lengths or (MINUTE,))
        ]
        self.source = self.sources[0]

    def look(self, *files: dict[str, bytes]) -> list[bool]:
        """Add files, let time pass, and look."""
        for one in files:
            self.files |= one
        self.clock.now += 20
        return [source.look() for source in self.sources]

    def end(self) -> None:
        """Add the end mark, and look until nothing more comes."""
        self.look(END)
        for _ in range(3):
            self.look()


def test_a_window_is_ready_when_a_later_minute_is_there() -> None:
    one = Followed()
    assert (one.look(), one.source.begun, list(one.source.ready(-1))) == ([False], False, [])
    assert one.source.describe_wait(-1) == "system metrics of profiler trial 'p0'"
    assert (
        one.source.describe_contents()
        == "holds no profiler data in its folders 'system' and 'framework', and no trace of "
        "torch.profiler."
    )
    assert (one.look(minute(0)), one.source.begun, list(one.source.ready(-1))) == ([True], True, [])
    assert one.source.describe_wait(-1) == (
        "data up to 2020-09-13 12:28:00 UTC, or the end, of profiler trial 'p0'"
    )
    one.look(minute(1), minute(2))
    assert (list(one.source.ready(-1)), list(one.source.ready(0))) == ([0, 1], [1])
    assert one.source.describe_wait(1) == (
        "data up to 2020-09-13 12:30:00 UTC, or the end, of profiler trial 'p0'"
    )
    assert (one.source.ended, one.source.ending) == (False, False)


def test_windows_have_times_once_the_data_begin() -> None:
    followed = Followed()
    assert followed.source.windows() is None
    followed.look(minute(0), minute(1))
    assert followed.source.windows() == WindowTimes(BEGIN_S * 1_000_000, MINUTE)


def test_nothing_new_is_no_news() -> None:
    one = Followed()
    one.look(minute(0), minute(1))
    assert one.look() == [False]
    assert list(one.source.ready(-1)) == [0]


def test_the_slowest_node_is_waited_for() -> None:
    one = Followed()
    one.look(minute(0), minute(0, node=2), minute(1), minute(2))
    assert list(one.source.ready(-1)) == []
    one.look(minute(1, node=2))
    assert list(one.source.ready(-1)) == [0]
    assert (one.trial.nodes, one.source.names()) == (["algo-1", "algo-2"], [])


def test_the_last_incomplete_minute_is_judged_at_the_end() -> None:
    one = Followed()
    one.look(minute(0), minute(1, seconds=20))
    assert list(one.source.ready(-1)) == [0]
    one.end()
    assert (one.source.ended, one.source.ending) == (True, False)
    assert (one.source.steps, one.source.all_steps) == ([0, 1], [0, 1])
    assert one.source.describe_contents() == (
        "holds 2 windows of 60 s, the nodes 'algo-1' and no framework metrics."
    )
    assert one.look() == [False]


def test_windows_between_which_there_is_nothing_are_no_steps() -> None:
    one = Followed()
    one.look(minute(0), minute(1), minute(1000), minute(1001))
    one.end()
    assert list(one.source.ready(-1)) == [0, 1, 1000, 1001]


def test_a_jump_of_the_clock_costs_nothing() -> None:
    one = Followed()
    early = BEGIN_S - 60 * 10_000_000
    one.look(minute(0, begin_s=early), minute(0), minute(1))
    one.end()
    assert one.source.steps == [0, 10_000_000, 10_000_001]


def test_live_and_afterwards_the_windows_are_the_same() -> None:
    live, afterwards = Followed(), Followed()
    seen: list[int] = []
    for number in (0, 1, 2, 7, 8):
        live.look(minute(number))
        seen += live.source.ready(seen[-1] if seen else -1)
    live.end()
    seen += live.source.ready(seen[-1])
    afterwards.look(*map(minute, (0, 1, 2, 7, 8)), END)
    for _ in range(3):
        afterwards.look()
    assert seen == list(afterwards.source.ready(-1)) == [0, 1, 2, 7, 8]


def test_walks_of_other_lengths_look_only_once() -> None:
    one = Followed(MINUTE, 2 * MINUTE)
    assert one.look(minute(0), minute(1), minute(2)) == [True, True]
    assert [list(source.ready(-1)) for source in one.sources] == [[0, 1], [0]]
    one.end()
    assert [list(source.ready(-1)) for source in one.sources] == [[0, 1, 2], [0, 1]]
    lists = one.store.counts["list"]
    one.look()
    assert one.store.counts["list"] == lists


def test_a_remote_trial_ends_after_its_grace() -> None:
    one = Followed(remote=True)
    one.look(minute(0), END)
    assert (one.source.ending, one.source.ended) == (True, False)
    for _ in range(3):
        one.look()
    assert (one.source.ending, one.source.ended) == (False, True)


def test_pauses_grow_while_nothing_comes() -> None:
    one = Followed()
    one.look(minute(0))
    looks = []
    for _ in range(40):
        before = one.store.counts["list"]
        one.clock.now += 1
        one.source.look()
        looks.append(one.store.counts["list"] > before)
    assert sum(looks[:10]) > sum(looks[30:]) > 0


def test_a_store_that_goes_away_is_trouble_and_comes_back() -> None:
    one = Followed(remote=True)
    one.look(minute(0))
    one.store.error = StorageUnavailableError("system/", "SlowDown", transient=True)
    assert one.look() == [False]
    assert list(one.source.notes()) == ["Cannot read 'system/': SlowDown."]
    assert one.source.describe_wait(0) == (
        "the storage of profiler trial 'p0': Cannot read 'system/': SlowDown."
    )
    one.store.error = None
    assert one.look(minute(1)) == [True]
    assert list(one.source.notes()) == []


def test_a_store_that_never_answers_is_an_error() -> None:
    one = Followed(remote=True)
    one.store.error = StorageUnavailableError("system/", "AccessDenied", transient=True)
    with pytest.raises(StorageUnavailableError, match="AccessDenied"):
        one.look()


def test_a_folder_that_does_not_exist_is_waited_for() -> None:
    one = Followed()
    one.store.error = ObjectNotFoundError("p0")
    assert one.look() == [False]
    one.store.error = None
    assert one.look(minute(0)) == [True]


def test_what_steps_of_tensors_have_and_windows_have_not() -> None:
    source = Followed().source
    assert (source.missing_workers(3), source.late_steps(), source.lost_files()) == ([], [], 0)


def test_a_node_that_falls_silent_is_missing_from_then_on() -> None:
    one = Followed()
    one.look(*(minute(at) for at in range(8)), minute(2, node=2), minute(3, node=2, seconds=25))
    one.end()
    assert [one.source.missing_workers(at) for at in range(8)] == [[]] * 5 + [["algo-2"]] * 3


def test_a_long_time_without_data_is_reported() -> None:
    one = Followed()
    one.look(*(minute(at) for at in (0, 1, 11, 22, 40, 60, 80, 100)))
    one.end()
    assert list(one.source.notes()) == [
        f"There is no data from 2020-09-13 {first} UTC to 2020-09-13 {last} UTC: "
        "the profiler paused, or a clock jumped."
        for first, last in [
            ("12:39:00", "12:49:00"),
            ("12:50:00", "13:07:00"),
            ("13:08:00", "13:27:00"),
        ]
    ]


@pytest.mark.parametrize("at_s", [1e12, 9e9])
def test_a_sample_from_the_far_future_is_one_window_and_not_all_up_to_it(at_s: float) -> None:
    one = Followed()
    (key, content), *_ = minute(0).items()
    last = content.splitlines()[-1]
    stray = json.dumps(json.loads(last) | {"Timestamp": at_s}).encode() + b"\n"
    one.look({key: content + stray})
    one.end()
    assert one.source.steps == [0, (int(at_s) - BEGIN_S) // 60]


def test_a_look_at_once_or_for_the_last_time_sees_the_end_mark() -> None:
    followed = Followed(remote=True)
    followed.look(minute(0), minute(1))
    followed.look()
    followed.files |= END
    assert followed.source.look() is False  # the pause is not over
    assert (followed.source.look(at_once=True), followed.source.ending, followed.source.ended) == (
        True,
        True,
        False,
    )
    assert followed.source.look(last=True)
    assert (followed.source.ended, list(followed.source.ready(-1))) == (True, [0, 1])
