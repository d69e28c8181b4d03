"""Statistics that profiler rules share, and how the time of framework events divides."""

from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import event
from profiler_writer import BEGIN_US

from rule_core.profiler.rule_helpers import framework_times
from rule_core.profiler.rule_helpers.framework_times import is_step, shares
from rule_core.profiler.rule_helpers.series import (
    FrameworkTimes,
    aggregate_framework_metrics,
    box_statistics,
    histogram,
    percentiles,
    summary,
)
from smdebug.rules import extensions

TRAIN, EVAL = "Step:ModeKeys.TRAIN", "Step:ModeKeys.EVAL"


def at(*seconds: float) -> list[tuple[float, float]]:
    """Return moments of the job as intervals."""
    return [(BEGIN_US + one * 1e6, BEGIN_US + one * 1e6) for one in seconds]


def test_nothing_has_no_statistics() -> None:
    assert (percentiles([], (50,)), box_statistics([]), summary([]), shares({})) == ({}, {}, {}, {})
    assert histogram([]) == {"probs": [], "binedges": []}


def test_statistics_are_those_of_numpy() -> None:
    values = np.random.default_rng(0).lognormal(size=1001)
    p25, p50, p75, p95, p99 = np.percentile(values, (25, 50, 75, 95, 99)).tolist()
    box = {"p25": p25, "p50": p50, "p75": p75, "p95": p95}
    found = box_statistics(values)
    assert found == {**box, "upper": p75 + 1.5 * (p75 - p25), "lower": values.min()}
    expected = {"max": values.max(), "p99": p99, "p95": p95, "p50": p50, "min": values.min()}
    assert summary(values) == expected
    assert summary(values, 1) == {name: round(one, 1) for name, one in expected.items()}


def test_histogram_of_one_value_has_all_its_bins() -> None:
    found = histogram([3.0, 3.0])
    assert (len(found["probs"]), len(found["binedges"]), sum(found["probs"])) == (100, 101, 1.0)


@pytest.mark.parametrize(
    ("amounts", "least", "expected"),
    [
        ({"a": 1.0, "b": 3.0}, 0.0, {"b": 75.0, "a": 25.0}),
        ({"a": 2.0, "b": 98.0}, 2.0, {"b": 98.0}),
        ({"a": 2.1, "b": 97.9}, 2.0, {"b": 97.9, "a": 2.1}),
        ({"a": 0.0}, 0.0, {}),
        ({"b": 1.0, "a": 1.0, "zero": 0.0}, 0.0, {"a": 50.0, "b": 50.0}),
    ],
)
def test_shares(amounts: dict[str, float], least: float, expected: dict[str, float]) -> None:
    assert list(shares(amounts, least).items()) == list(expected.items())


def test_steps_are_recognized_by_their_name() -> None:
    assert is_step(event(TRAIN, 0, 1))
    assert not is_step(event("Forward", 0, 1, phase=TRAIN))


@pytest.mark.parametrize(
    ("named", "table"),
    [
        ({"name": EVAL}, "phase"),
        ({"name": "Forward-SubModuleInternal"}, "forward_backward"),
        ({"name": "conv1", "phase": "Backward-SubModuleInternal"}, "forward_backward"),
        ({"name": "aten::add", "phase": "cpu_functions"}, "CPU"),
        ({"name": "MatMul", "phase": "/host:CPU"}, "CPU"),
        ({"name": "aten::add", "phase": "gpu_functions-dev:0"}, "GPU"),
        ({"name": "MatMul", "phase": "/device:GPU:0/stream:1"}, "GPU"),
        ({"name": "fetch", "phase": "DataLoaderWorker"}, "general"),
        ({"name": "x", "phase": "Horovod"}, "horovod"),
        ({"name": "x", "phase": "gpu", "file_type": "SMDataParallelMetrics"}, "horovod"),
    ],
)
def test_tables(named: dict[str, Any], table: str) -> None:
    assert framework_times.table_of(event(start_s=0, duration_s=1, **named)) == table


def test_time_outside_of_steps_is_counted_by_node() -> None:
    times = FrameworkTimes(since=BEGIN_US)
    times.add([event(TRAIN, 10, 10, node="a"), event("load", 5, 1, node="b")])
    times.add([event(EVAL, 30, 10, node="a"), event(TRAIN, 15, 5, node="b")])
    assert times.count == 4
    assert times.details()["phase"] == {"others": 58.333, TRAIN: 25.0, EVAL: 16.667}


def test_without_a_begin_the_first_event_is_it() -> None:
    events = [event("load", 5, 5), event(TRAIN, 10, 5)]
    assert aggregate_framework_metrics(events)["phase"] == {TRAIN: 50.0, "others": 50.0}


def test_only_events_that_overlap_an_interval_count() -> None:
    events = [
        event("before", 0, 0.9, phase="cpu 2"),
        event("touches", 0, 1, phase="cpu"),
        event("within", 1.4, 0.2, phase="cpu"),
        event("between", 2.1, 0.8, phase="cpu"),
        event("around", 0, 9, phase="cpu 3"),
        event("after", 4.1, 1, phase="cpu"),
    ]
    begin, end = BEGIN_US + 1e6, BEGIN_US + 2e6
    # In any order, one within the other.
    intervals = [(end + 1e6, end + 2e6), (begin, end), (begin + 1e5, begin + 2e5)]
    found = aggregate_framework_metrics(events, intervals)["CPU_total"]
    assert found == {"around": 9_000_000, "touches": 1_000_000}  # the third is below 2 %
    assert aggregate_framework_metrics(events, [])["CPU_total"] == {}
    assert aggregate_framework_metrics([], intervals)["phase"] == {}


def test_a_share_is_one_of_all_kernels_not_of_the_listed_ones() -> None:
    events = [event("gemm", 0, 26, phase="gpu_functions-dev:0")]
    events += [event(f"small_{at}", 26 + at, 1, phase="gpu_functions-dev:0") for at in range(74)]
    assert aggregate_framework_metrics(events)["GPU"] == {"gemm": 26.0}


def test_nested_operators_are_not_each_charged_with_the_same_time() -> None:
    nested = [("aten::to", 10, 10), ("aten::_to_copy", 11, 9), ("aten::copy_", 11.5, 8)]
    events = [event(name, start, length, phase="cpu_functions") for name, start, length in nested]
    times = FrameworkTimes()
    times.add(events[2:])  # a window may end between the ends of operators
    times.add(events[:2])
    details = times.details()
    assert details["CPU_total"] == {
        "aten::copy_": 8_000_000,
        "aten::to": 1_000_000,
        "aten::_to_copy": 1_000_000,
    }
    assert details["phase_time"] == {"cpu_functions": 10_000_000}


def test_a_caller_that_is_rounded_to_end_before_what_it_called() -> None:
    caller, called = (event(name, 0, 0, phase="cpu_functions") for name in ("linear", "addmm"))
    for operator, start_us, duration in ((caller, 0.12, 100.1), (called, 10.13, 90.0)):
        operator.start_time += start_us
        operator.duration = duration
        operator.end_time = operator.start_time + duration
    assert called.end_time > caller.end_time
    own_times = aggregate_framework_metrics([caller, called])["CPU_total"]
    assert own_times == pytest.approx({"addmm": 90.0, "linear": 10.1})


def test_steps_count_by_the_moments_they_overlap() -> None:
    events = [event(TRAIN, 0, 2), event(EVAL, 3, 1)]
    found = aggregate_framework_metrics(events, at(0.5, 1.0, 2.5, 3.5))["phase"]
    assert found == {TRAIN: 50.0, EVAL: 25.0, "others": 25.0}


def test_an_event_may_end_one_call_after_the_moment_it_overlaps() -> None:
    times = FrameworkTimes()
    times.add_during([], np.array(at(1.0)))
    assert times.is_open
    times.add_during([event(TRAIN, 0, 70)], np.empty((0, 2)))
    assert not times.is_open
    times.add_during([event(TRAIN, 0, 130)], np.empty((0, 2)))
    assert (times.count, times.details()["phase"]) == (1, {TRAIN: 100.0})


def test_names_beyond_a_bound_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework_times, "NAMES_KEPT", 2)
    events = [event(f"op{one % 4}", one, 1, phase="cpu") for one in range(8)]
    assert aggregate_framework_metrics(events)["CPU_total"] == {
        "others": 4_000_000,
        "op0": 2_000_000,
        "op1": 2_000_000,
    }


def test_the_helpers_are_where_custom_rules_look_for_them() -> None:
    helpers = {"FrameworkTimes", "aggregate_framework_metrics", "box_statistics", "histogram"}
    helpers |= {"is_step", "percentiles", "shares", "summary"}
    assert helpers <= set(extensions.__all__)
    assert all(hasattr(extensions, name) for name in extensions.__all__)


def test_a_histogram_of_values_that_floats_hardly_tell_apart() -> None:
    low = 9e9
    found = histogram([low, float(np.nextafter(low, np.inf)), low])
    assert (len(found["probs"]), len(found["binedges"])) == (100, 101)
    assert sum(found["probs"]) == pytest.approx(1)
    assert found["binedges"][0] < low < found["binedges"][-1]
    assert histogram([0.0, 0.0], bins=2) == {"probs": [0.0, 1.0], "binedges": [-0.5, 0.0, 0.5]}
