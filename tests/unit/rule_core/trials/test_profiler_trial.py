"""Profiler trials: how far their data reach, what they wait for, and what they answer."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import profiler_writer as writer
import pytest
import timeline_writer
from memory_store import MemoryStore
from profiler_writer import BEGIN_S, BEGIN_US, END, MINUTE_US
from timeline_writer import Event

from rule_core.exceptions import NoMoreProfilerData, RuleEvaluationConditionMet, StepNotYetAvailable
from rule_core.profiler.files.stop_signal import StopSignal
from rule_core.profiler.readers.source import ProfilerSource
from rule_core.rules.invoke_rule import invoke_rule
from rule_core.rules.rule import Rule
from rule_core.storage.base import ReadCosts
from rule_core.trials.create_trial import create_trial
from rule_core.trials.profiler_trial import ProfilerTrial
from rule_core.trials.refresh import no_refresh
from rule_core.trials.snapshot_view import snapshot

S = 1_000_000
Files = dict[str, bytes]


class Clock:
    """Does one thing each time that somebody sleeps."""

    def __init__(self, *things: Callable[[], object], now: float = BEGIN_S + 86400.0) -> None:
        self.now = now
        self.things = list(things)
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        assert self.things, "It would wait for ever."
        self.things.pop(0)()


def system(*minutes: int, node: str = "algo-1", samples: int = 60) -> Files:
    """Return files of a node: a sample a second, whose value is the second of the job."""
    result: Files = {}
    for at in minutes:
        values = range(60 * at, 60 * at + samples)
        part = writer.cpu(values, node=node, every_s=1.0)
        result |= writer.files(part, begin_s=BEGIN_S + 60 * at)
    return result


def timeline(*events: Event, node: str = "1-algo-1", kind: str = timeline_writer.PYTHON) -> Files:
    end = BEGIN_US + int(max(event.ts + event.dur for event in events))
    text = timeline_writer.text(timeline_writer.records(events, BEGIN_US))
    return {timeline_writer.key(end, node, kind): text.encode()}


def steps(first: int, last: int, length_s: float = 10.0, **more: str) -> Files:
    found = [timeline_writer.step(at, at * length_s * S, length_s * S) for at in range(first, last)]
    return timeline(*found, **more)


def trial(files: Files, clock: Clock | None = None, looks: int = 1) -> ProfilerTrial:
    found = ProfilerTrial.over(MemoryStore(files), "t", "/t", clock=clock or Clock())
    for _ in range(looks):
        found.refresh()
    return found


def after(time_us: int) -> float:
    """Return a time in seconds of the job."""
    return (time_us - BEGIN_US) / S


# -- how far the data reach -------------------------------------------------------------------


def test_nothing_is_there_yet() -> None:
    found = trial({})
    assert (found.first_timestamp, found.newest_timestamp, found.settled_timestamp) == (0, 0, 0)
    assert (found.nodes, found.has_framework_data, found.problems) == ([], False, [])
    assert found.next_timestamp(0) is None
    assert not found.job_finished()


def test_a_live_job_is_settled_up_to_the_newest_file_of_system_metrics() -> None:
    found = trial(system(0, 1, 2))
    assert after(found.first_timestamp) == 0
    assert after(found.newest_timestamp) == after(found.settled_timestamp) == 120


def test_an_ended_job_is_settled_behind_its_last_sample() -> None:
    found = trial(system(0, 1, samples=30) | END)
    assert found.job_finished()
    assert after(found.newest_timestamp) == 89
    assert after(found.settled_timestamp) == 60  # something may still come
    assert not found.refresh()
    assert found.settled_timestamp == found.newest_timestamp + 1
    assert found.loaded_all_steps


def test_the_writer_that_is_furthest_behind_decides() -> None:
    files = system(0, 1, 2) | system(0, 1, node="algo-2") | steps(0, 7, node="1-algo-2")
    assert after(trial(files).settled_timestamp) == 60
    files |= system(2, node="algo-2")
    assert after(trial(files).settled_timestamp) == 70


def test_who_is_too_far_behind_is_not_waited_for() -> None:
    files = system(0, 1, 2, 3) | system(0, node="algo-2")
    assert after(trial(files).settled_timestamp) == 0
    files |= system(4)
    assert after(trial(files).settled_timestamp) == 240


def test_a_clock_that_is_ahead_does_not_make_the_others_late() -> None:
    clock = Clock(now=BEGIN_S + 200.0)
    files = system(0, 1, 2) | system(0, 60, node="algo-2")
    assert after(trial(files, clock).settled_timestamp) == 120
    # All clocks are ahead of ours: then ours is wrong.
    early = Clock(now=100.0)
    assert after(trial(files, early).settled_timestamp) == 3600


def test_what_is_settled_stays_settled_and_what_comes_late_is_counted() -> None:
    files = system(1, 2, 3)
    found = trial(files)
    assert after(found.settled_timestamp) == 180
    files |= system(0, 2, 3, node="algo-2") | steps(0, 2)
    assert found.refresh()
    assert after(found.settled_timestamp) == 180
    assert found.source.late == 3
    assert found.problems == ["3 files arrived too late to be evaluated completely."]


def test_an_evaluation_waits_for_writers_that_it_has_not_seen_yet() -> None:
    files = system(*range(5))
    found = ProfilerTrial.over(MemoryStore(files), "t", "/t", clock=Clock(), waits_for_unseen=True)
    assert found.refresh()
    assert after(found.settled_timestamp) == 60
    files |= system(1, node="algo-2") | steps(8, 12)
    assert found.refresh()
    assert (after(found.settled_timestamp), found.problems) == (60, [])


def test_a_timeline_of_which_a_part_came_too_late_is_counted_once_it_was_read() -> None:
    files = system(0, 1, 2)
    found = trial(files)
    assert after(found.settled_timestamp) == 120
    files |= system(3) | steps(11, 14)
    assert found.refresh()
    assert found.problems == []
    assert len(found.framework_events(BEGIN_US + 120 * S, BEGIN_US + 180 * S)) == 3
    assert found.problems == []
    files |= system(4) | steps(12, 20, node="2-algo-1")
    assert found.refresh()
    assert len(found.framework_events(BEGIN_US + 180 * S, BEGIN_US + 240 * S)) == 3
    assert found.problems == ["1 file arrived too late to be evaluated completely."]


def test_what_comes_from_before_the_beginning_does_not_move_it_once_something_is_settled() -> None:
    files = system(1)
    found = trial(files)
    files |= system(0, node="algo-2")
    assert found.refresh()
    assert (after(found.first_timestamp), found.problems) == (0, [])
    files |= system(2, 3) | system(1, 2, 3, node="algo-2")
    assert found.refresh()
    assert after(found.settled_timestamp) == 180
    files |= system(-1, node="algo-3")
    assert found.refresh()
    assert after(found.first_timestamp) == 0


def test_the_data_begin_with_the_first_timeline_if_it_is_earlier() -> None:
    found = trial(system(2, 3) | steps(0, 20))
    assert after(found.first_timestamp) == 10
    assert after(trial(system(2, 3) | steps(0, 6)).first_timestamp) == 10
    assert after(trial(system(2, 3) | steps(29, 31)).first_timestamp) == 120


def test_without_system_metrics_a_long_timeline_begins_the_job() -> None:
    found = trial(steps(0, 500) | steps(495, 505, node="2-algo-1"))
    assert after(found.first_timestamp) == 10


def test_a_timeline_with_senseless_times_does_not_begin_the_job() -> None:
    files = timeline(Event("p", "a", -BEGIN_US + 5, 0), Event("p", "b", 0, 600 * S))
    assert after(trial(files).first_timestamp) == 600 - 28 * 24 * 3600
    empty = {timeline_writer.key(BEGIN_US + 5): b"[]"}
    assert after(trial(empty).first_timestamp) == 5e-6


def test_the_begin_stands_once_data_were_read() -> None:
    files = system(2)
    found = trial(files)
    files |= system(1, node="algo-2")
    found.refresh()
    assert after(found.first_timestamp) == 60
    found.system_samples(found.first_timestamp, found.first_timestamp + MINUTE_US)
    files |= system(0, node="algo-3")
    found.refresh()
    assert after(found.first_timestamp) == 60


def test_where_the_next_data_are() -> None:
    files = system(0, 1, 60) | steps(0, 1) | steps(700, 701) | END
    found = trial(files, looks=2)
    asked = [0, 30, 119, 120, 3600, 3660, 7010, 7011]
    times = [found.next_timestamp(BEGIN_US + at * S) for at in asked]
    assert [None if one is None else after(one) for one in times] == [
        *(0, 30, 119, 3600, 3600, 7010, 7010, None),
    ]


def test_nodes_and_kinds() -> None:
    found = trial(system(0) | system(0, node="algo-2") | steps(0, 1, node="9-algo-3"))
    assert (found.nodes, found.has_framework_data) == (["algo-1", "algo-2"], True)
    assert trial(steps(0, 1, node="9-algo-3")).nodes == ["9-algo-3"]


# -- answers ----------------------------------------------------------------------------------


def test_samples_and_events_of_a_window() -> None:
    found = trial(system(0, 1) | steps(0, 10) | END, looks=2)
    begin = found.first_timestamp
    samples = found.system_samples(begin, begin + MINUTE_US)
    assert samples.value.tolist() == list(range(60))
    events = found.framework_events(begin, begin + MINUTE_US)
    assert [after(event.end_time) for event in events] == [10, 20, 30, 40, 50]
    assert (found.reads, found.missed, found.damaged) == (2, {}, 0)


def test_what_was_never_there_is_missed() -> None:
    found = trial(system(0, 1))
    assert found.framework_events(0, 1) == []
    assert len(found.system_samples(0, 1)) == 0
    assert list(found.missed) == ["framework metrics", "system metrics"]
    found.system_samples(BEGIN_US, BEGIN_US + 1)
    found.system_samples(0, 1)
    assert (list(found.missed), found.reads) == (["framework metrics"], 1)


def test_documented_lists_have_both_ends() -> None:
    found = trial(system(0, 1) | steps(0, 10) | END, looks=2)
    metrics = found.get_system_metrics(BEGIN_US + 5 * S, BEGIN_US + 7 * S)
    assert [(metric.type, metric.name, metric.value, metric.node_id) for metric in metrics] == [
        ("cpu", "cpu0", at, "algo-1") for at in (5.0, 6.0, 7.0)
    ]
    assert [metric.timestamp for metric in metrics] == [BEGIN_S + at for at in (5.0, 6.0, 7.0)]
    events = found.get_framework_metrics(BEGIN_US + 10 * S, BEGIN_US + 20 * S)
    assert [event.event_args and event.event_args["step_num"] for event in events] == [
        "0",
        "1",
        "2",
    ]
    assert found.reads == 2


def test_views_share_what_is_read_and_have_their_own_counts() -> None:
    found = trial(system(0, 1))
    other = found.share()
    other.system_samples(BEGIN_US, BEGIN_US + S)
    assert (other.source is found.source, found.reads, other.reads) == (True, 0, 1)
    assert (other.name, other.path, repr(other)) == (
        *("t", "/t", "ProfilerTrial(name='t', path='/t')"),
    )


def test_questions_look_for_new_files_unless_that_is_held_back() -> None:
    files = system(0)
    found = trial(files)
    files |= system(1)
    end = BEGIN_US + 3 * MINUTE_US
    with no_refresh(found):
        assert len(found.system_samples(0, end)) == 60
    with snapshot(found, 0):
        assert len(found.get_system_metrics(0, end)) == 60
    assert len(found.system_samples(0, end)) == 120


class Remote(MemoryStore):
    costs = ReadCosts(parallel=2)


def test_a_remote_trial_is_not_looked_at_all_the_time() -> None:
    files, clock = system(0), Clock(int)
    found = ProfilerTrial.over(Remote(files), "t", "s3://b/t", clock=clock)
    assert len(found.system_samples(0, BEGIN_US + 3 * MINUTE_US)) == 60
    files |= system(1)
    assert len(found.system_samples(0, BEGIN_US + 3 * MINUTE_US)) == 60
    clock.sleep(found.pause_s)
    assert len(found.system_samples(0, BEGIN_US + 3 * MINUTE_US)) == 120


def test_the_latest_time_is_that_of_the_kind_that_is_behind_and_at_the_end_of_all() -> None:
    files = system(0, 1, 2) | steps(0, 5)
    found = trial(files)
    assert after(found.get_latest_timestamp()) == 50
    assert after(trial(system(0, 1, 2)).get_latest_timestamp()) == 120
    assert after(found.first_timestamp) == 0
    files |= END
    assert after(found.get_latest_timestamp()) == 179


def test_damage_is_reported() -> None:
    files = system(0, 1)
    key = min(files)
    files[key] = b"nothing\n" + files[key]
    found = trial(files)
    found.system_samples(0, BEGIN_US + MINUTE_US)
    assert found.damaged == 1
    assert found.problems[0].startswith(f"{key}: 1 of 61 lines are no system metrics; line 1: ")


# -- waiting ----------------------------------------------------------------------------------


def test_it_waits_until_the_data_of_a_window_are_there(caplog: pytest.LogCaptureFixture) -> None:
    files = system(0)
    clock = Clock(
        int, lambda: files.update(system(1)), *[int] * 50, lambda: files.update(system(2))
    )
    found = trial(files, clock)
    caplog.set_level(logging.INFO)
    found.wait_for_data(BEGIN_US + MINUTE_US, BEGIN_US)
    assert len(clock.slept) == 2
    found.wait_for_data(BEGIN_US + 2 * MINUTE_US, BEGIN_US + MINUTE_US)
    assert (clock.things, set(clock.slept)) == ([], {0.25})
    (said,) = [record.getMessage() for record in caplog.records]
    begin, end = BEGIN_US + MINUTE_US, BEGIN_US + 2 * MINUTE_US
    assert said.endswith(f": waiting for data up to {end} us; data exist up to {begin} us.")


def test_the_last_incomplete_minute_is_judged_too_and_then_there_are_no_more_data() -> None:
    files = system(0, 1)
    clock = Clock(lambda: files.update(END | system(1, samples=20)), int)
    found = trial(files, clock)
    found.wait_for_data(BEGIN_US + 2 * MINUTE_US, BEGIN_US + MINUTE_US)
    assert clock.slept == [0.25, 1.0]
    assert after(found.newest_timestamp) == 79
    with pytest.raises(NoMoreProfilerData) as caught:
        found.wait_for_data(BEGIN_US + 3 * MINUTE_US, BEGIN_US + 2 * MINUTE_US)
    assert caught.value.timestamp == BEGIN_US + 3 * MINUTE_US


def test_a_last_sample_on_a_border_is_not_lost() -> None:
    found = trial(system(0) | system(1, samples=1) | END, looks=2)
    found.wait_for_data(BEGIN_US + 2 * MINUTE_US, BEGIN_US + MINUTE_US)
    assert len(found.system_samples(BEGIN_US + MINUTE_US, BEGIN_US + 2 * MINUTE_US)) == 1


def test_a_slow_writer_has_a_second_after_the_end_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "3")
    files = system(0)
    clock = Clock(lambda: files.update(END), lambda: files.update(system(1)), int)
    found = trial(files, clock)
    found.wait_for_data(BEGIN_US + 2 * MINUTE_US, BEGIN_US)
    assert (clock.slept, after(found.newest_timestamp)) == ([0.25, 3.0, 3.0], 119)


def test_an_ended_job_without_data_has_no_more() -> None:
    with pytest.raises(NoMoreProfilerData):
        trial(dict(END), looks=2).wait_for_data(MINUTE_US, 0)


def test_while_a_rule_judges_nobody_waits() -> None:
    found = trial(system(0, 1))
    with snapshot(found, 0):
        found.wait_for_data(BEGIN_US + MINUTE_US, BEGIN_US)
        with pytest.raises(StepNotYetAvailable):
            found.wait_for_data(BEGIN_US + 2 * MINUTE_US, BEGIN_US)
    assert found.waited_until == BEGIN_US + 2 * MINUTE_US


def test_a_stop_signal_ends_the_data(tmp_path: Path) -> None:
    writer.write(tmp_path, system(0, 1))
    file = tmp_path / "signals" / "stop"
    clock = Clock(int, now=float(BEGIN_S))
    signal = StopSignal([file], 10)
    source = ProfilerSource(MemoryStore(system(0, 1)), clock, signal)
    found = ProfilerTrial("t", "/t", clock=clock, source=source)
    assert found.refresh()
    file.parent.mkdir()
    file.write_text(str(BEGIN_S))
    assert (source.stop_signalled(), found.job_finished(), found.refresh()) == (False, False, False)
    clock.now += 11
    assert found.refresh()
    assert (source.stop_signalled(), found.job_finished()) == (True, True)
    assert not found.refresh()
    assert found.settled_timestamp == found.newest_timestamp + 1
    assert (found.stop_files, found.stop_grace) == ((file,), 10)


# -- create_trial -----------------------------------------------------------------------------


def test_create_trial_opens_it(tmp_path: Path) -> None:
    writer.write(tmp_path / "job", system(0, 1) | END)
    out = tmp_path / "out"
    found = create_trial(f" {tmp_path}/job ", profiler=True, output_dir=str(out), clock=Clock())
    assert (found.name, found.path, found.trial_dir) == ("job", f"{tmp_path}/job", found.path)
    assert (found.output_dir, found.temp_dir) == (str(out), str(out / ".sagemaker-ignore"))
    assert (out / ".sagemaker-ignore").is_dir()
    assert found.settled_timestamp == found.newest_timestamp + 1
    assert sorted(one.name for one in (tmp_path / "job").iterdir()) == ["system"]
    named = create_trial(tmp_path / "job", "mine", profiler=True, output_dir=None)
    assert (named.name, named.output_dir, named.temp_dir) == ("mine", None, None)


def test_create_trial_waits_for_the_first_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(*[int] * 50, lambda: writer.write(tmp_path / "job", steps(0, 3)))
    found = create_trial(tmp_path / "job", profiler=True, output_dir=None, clock=clock)
    assert after(found.first_timestamp) == 10
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith("/job': no metrics after 10 s. Still waiting; check the path.")


def test_create_trial_does_not_wait_for_ever(tmp_path: Path) -> None:
    match = rf"^Profiler trial '{tmp_path}' has no metrics\. Check the path\.$"
    with pytest.raises(NoMoreProfilerData, match=match):
        create_trial(tmp_path, profiler=True, output_dir=None, clock=Clock(), timeout=0)
    writer.write(tmp_path, END)
    with pytest.raises(NoMoreProfilerData, match=match):
        create_trial(tmp_path, profiler=True, output_dir=None, clock=Clock(int))


def test_a_folder_that_cannot_be_made_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer.write(tmp_path, system(0))
    (tmp_path / "out").write_text("a file")
    found = create_trial(tmp_path, profiler=True, output_dir=str(tmp_path / "out"))
    assert after(found.first_timestamp) == 0
    assert "out' cannot be created: Not a directory." in caplog.text


# -- rules ------------------------------------------------------------------------------------


class Busy(Rule):
    """Judges windows as rules found in public do: by times of its own."""

    def __init__(self, base_trial: Any, met_at: int = -1) -> None:
        super().__init__(base_trial)
        self.at = base_trial.first_timestamp
        self.met_at = met_at
        self.seen: list[int] = []
        self.end_answers = False

    def invoke_at_step(self, step: int) -> bool:
        return step == self.met_at

    def invoke(self, step: int) -> None:
        end = self.at + MINUTE_US
        self.base_trial.wait_for_data(end, self.at)
        self.seen.append(len(self.base_trial.get_system_metrics(self.at, end - 1)))
        self.at = end
        if self.invoke_at_step(step):
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def invoke_at_end(self, step: int) -> bool:
        self.seen.append(-step)
        return self.end_answers


def test_invoke_rule_drives_rules_until_there_are_no_more_data() -> None:
    files = system(0, 1)
    clock = Clock(lambda: files.update(system(2, samples=20) | END), int)
    rule = Busy(trial(files, clock))
    invoke_rule(rule)
    assert rule.seen == [60, 60, 20, -2]


def test_invoke_rule_ends_at_its_end_step_and_at_a_met_condition() -> None:
    rule = Busy(trial(system(0, 1, 2, 3)), met_at=1)
    invoke_rule(rule, end_step=2)
    assert rule.seen == [60, 60, -1]
    rule = Busy(trial(system(0, 1, 2, 3)), met_at=1)
    with pytest.raises(RuleEvaluationConditionMet) as caught:
        invoke_rule(rule, raise_eval_cond=True)
    assert (caught.value.step, rule.seen) == (1, [60, 60, -1])


def test_what_a_rule_answers_at_the_end_of_the_data_counts() -> None:
    rule = Busy(trial(system(0) | END, looks=2))
    rule.end_answers = True
    with pytest.raises(RuleEvaluationConditionMet) as caught:
        invoke_rule(rule, raise_eval_cond=True)
    assert caught.value.step == 0
    invoke_rule(rule)
