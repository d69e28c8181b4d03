from profiler_writer import BEGIN_S, Series, cpu, files, gpu, io_wait, line

from rule_core.profiler.system.columns import parse_system_metrics
from rule_runner.service.curves.machine_use import CurveKey, MachineUse, ProfileKind

START_MS = BEGIN_S * 1000


def curves(use: MachineUse, *contents: bytes) -> dict[CurveKey, tuple[list[int], list[float]]]:
    columns = parse_system_metrics(contents, use.series)
    return {
        curve.key: ((curve.time_ms - START_MS).tolist(), curve.values.tolist())
        for curve in use.curves(columns)
    }


def test_cores_are_averaged_at_each_tick_and_gpus_are_not() -> None:
    sent = Series("network", "Algorithm", "TransmitBytesPerSecond", [7.0, 9.0])
    series = [cpu([10.0, 20.0]), cpu([30.0, 60.0], "cpu1"), io_wait([1.0, 2.0]), sent]
    series += [gpu([5.0, 6.0]), gpu([7.0, 8.0], "gpu1")]
    [content] = files(*series).values()
    assert curves(MachineUse(), content) == {
        CurveKey(ProfileKind.CPU, "algo-1"): ([0, 500], [20.0, 40.0]),
        CurveKey(ProfileKind.IO_WAIT, "algo-1"): ([0, 500], [1.0, 2.0]),
        CurveKey(ProfileKind.NETWORK, "algo-1", "sent"): ([0, 500], [7.0, 9.0]),
        CurveKey(ProfileKind.GPU, "algo-1", "gpu0"): ([0, 500], [5.0, 6.0]),
        CurveKey(ProfileKind.GPU, "algo-1", "gpu1"): ([0, 500], [7.0, 8.0]),
    }


def test_samples_of_a_tick_may_differ_by_milliseconds() -> None:
    lines = [
        line(value, BEGIN_S + second, name=name)
        for second, name, value in [(0.0, "cpu0", 10.0), (0.015, "cpu1", 20.0), (0.1, "cpu0", 50.0)]
    ]
    [(times, values)] = curves(MachineUse(), b"".join(lines)).values()
    assert (times, values) == ([0, 100], [15.0, 50.0])


def test_absurd_values_and_unknown_series_are_dropped() -> None:
    use = MachineUse()
    lines = [line(5.0, BEGIN_S), line(1e300, BEGIN_S + 1), line(1.0, BEGIN_S, "Temperature")]
    assert curves(use, b"".join(lines)) == {CurveKey(ProfileKind.CPU, "algo-1"): ([0], [5.0])}
    later = line(9.0, BEGIN_S + 60, node="algo-2")
    assert [key.node for key in curves(use, later)] == ["algo-2"]
    assert curves(use, line(1e300, BEGIN_S)) == {}
