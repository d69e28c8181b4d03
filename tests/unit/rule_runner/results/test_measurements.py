"""Measurements: the worst series and points stay, in bounded memory; what is written of them."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from evaluating import Script, WoundClock, configured, json_lines, runner, trial
from memory_store import MemoryStore

from rule_core.model.segments import global_step
from rule_runner.results import measurements
from rule_runner.results.json_text import dump_json
from rule_runner.results.measurements import (
    Measurements,
    MeasurementsRecord,
    decode_measurements,
    excess,
)
from smdebug.rules import Rule
from smdebug.rules.extensions import Measured, Quantity

LOSS = Quantity("loss", "loss [nat]", log=True)
SMALL = Quantity("mean", "mean |g|", worse="below")


def points(
    *values: float, quantity: str = "loss", tensor: str = "a", limit: float = 1.0, start: int = 0
) -> list[Measured]:
    return [
        Measured(start + at, quantity, limit, [((tensor, "worker_0"), value, value > limit)])
        for at, value in enumerate(values)
    ]


def kept(found: Measurements) -> list[tuple[str | None, list[int]]]:
    return [(one.tensor, one.steps) for one in found.record().series]


@pytest.mark.parametrize(
    ("measured", "limit", "worse", "expected"),
    [
        (3.0, 2.0, "above", 0.5),
        (1.0, 2.0, "above", -0.5),
        (1.0, 2.0, "below", 0.5),
        (3.0, -2.0, "above", 2.5),
        (0.25, 0.0, "above", 0.25),
        (math.inf, 2.0, "above", math.inf),
        (math.nan, 2.0, "below", math.inf),
        (math.nan, math.inf, "above", -math.inf),
        (5.0, -math.inf, "below", -math.inf),
        (5.0, math.nan, "above", -math.inf),
    ],
)
def test_how_far_a_value_is_beyond_its_limit(
    measured: float, limit: float, worse: measurements.Side, expected: float
) -> None:
    assert excess(measured, limit, worse) == expected


def test_a_series_is_written_as_it_was_measured() -> None:
    found = Measurements([LOSS])
    found.add(
        [
            Measured(3, "loss", 2.0, [(("a", "w"), math.nan, False)]),
            Measured(4, "loss", 2.0, [(("a", "w"), 3.0, True)]),
        ]
    )
    record = msgspec.json.decode(dump_json(found.record()))
    assert record == {
        "quantities": [{"name": "loss", "label": "loss [nat]", "worse": "above", "log": True}],
        "series": [
            {
                "quantity": "loss",
                "tensor": "a",
                "worker": "w",
                "steps": [3, 4],
                "measured": ["NaN", 3.0],
                "limit": [2.0],
                "met": [4],
            }
        ],
        "left_out": 0,
    }
    assert msgspec.json.decode(dump_json(record), type=MeasurementsRecord) == found.record()


def test_numbers_have_seven_digits_and_limits_that_differ_are_all_written() -> None:
    measurements = Measurements([LOSS])
    for step, limit in enumerate((1 / 3, 2 / 3)):
        measurements.add([Measured(step, "loss", limit, [((None, None), 12345.678912, False)])])
    (series,) = measurements.record().series
    assert (series.measured, series.limit) == ([12345.68] * 2, [0.3333333, 0.6666667])


def test_those_that_were_met_come_first_then_the_worst() -> None:
    found = Measurements([SMALL])
    values = (("ok", 5.0, False), ("low", 0.1, False), ("met", 0.9, True))
    points = [((tensor, None), value, met) for tensor, value, met in values]
    found.add([Measured(0, "mean", 1.0, points)])
    assert [tensor for tensor, _ in kept(found)] == ["met", "low", "ok"]


def test_what_is_not_declared_is_drawn_too() -> None:
    found = Measurements([LOSS])
    found.add(points(0.5, quantity="own"))
    assert [(one.name, one.label, one.worse) for one in found.record().quantities] == [
        ("loss", "loss [nat]", "above"),
        ("own", "own", "above"),
    ]


def test_only_the_worst_series_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "SERIES_KEPT", 2)
    found = Measurements([LOSS])
    for at in range(3):
        for tensor, value in (("a", 0.1), ("b", 0.2), ("c", 0.3 + at), ("d", 0.25)):
            found.add(points(value, tensor=tensor, start=at))
    assert kept(found) == [("c", [0, 1, 2]), ("d", [0, 1, 2])]
    assert found.record().left_out == 2


def test_a_series_that_turns_bad_is_kept_though_it_began_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measurements, "SERIES_KEPT", 1)
    found = Measurements([LOSS])
    for at, value in enumerate([0.1, 0.1, 9.0]):
        found.add(points(0.5, tensor="steady", start=at))
        found.add(points(value, tensor="late", start=at))
    assert kept(found) == [("late", [2])]
    assert found.record().left_out == 1


def test_of_many_points_the_worst_of_neighbours_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "POINTS_KEPT", 8)
    found = Measurements([LOSS])
    values = [0.1] * 1000
    values[501], values[502] = 0.9, 7.0
    found.add(points(*values))
    (series,) = found.record().series
    assert len(series.steps) <= 8
    assert series.steps == sorted(series.steps)
    assert (max(series.measured, key=float), series.met) == (7.0, [502])
    assert np.diff(series.steps).max() < 300


@pytest.mark.parametrize("seed", range(8))
def test_points_are_kept_alike_however_many_are_added_together(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(measurements, "SERIES_KEPT", 5)
    monkeypatch.setattr(measurements, "POINTS_KEPT", 16)
    random = np.random.default_rng(seed)
    steps = []
    for step in range(200):
        number = 9 if seed % 2 or step % 50 else int(random.integers(1, 9))
        values = random.standard_normal(number) * (np.nan if seed == 3 and step == 70 else 1)
        limit = [1.0, 0.0, math.inf, math.nan][seed % 4] if step < 150 else 2.0
        repeated = 3 if seed == 5 else number  # a series may be measured twice at a step
        series = [(f"t{at % repeated}", "w") for at in range(number)]
        points = zip(series, map(float, values), map(bool, values > 1.5), strict=True)
        steps.append(Measured(global_step(step // 180, step), "loss", limit, [*points]))
    records = []
    for pending in (1, 30, 10_000):
        monkeypatch.setattr(measurements, "PENDING", pending)
        found = Measurements([LOSS if seed % 3 else SMALL])
        for measured in steps:
            found.add([measured])
        records.append(dump_json(found.record()))
    assert records[0] == records[1] == records[2]


def test_counting_what_is_left_out_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "SERIES_KEPT", 1)
    monkeypatch.setattr(measurements, "COUNTED", 3)
    found = Measurements([LOSS])
    found.add([one for at in range(10) for one in points(0.1, tensor=str(at))])
    assert found.record().left_out == 3


# -- in an evaluation ----------------------------------------------------------------------------


class Above(Rule):
    """Met when the loss is above 1."""

    QUANTITIES = (LOSS,)

    def invoke_at_step(self, step: int) -> bool:
        loss = float(self.base_trial.tensor("loss").value(step)[0])
        return self.measured(step, "loss", loss, 1.0, met=loss > 1, tensor="loss", note="High.")


def losses(*values: float, ended: bool = True) -> MemoryStore:
    steps = {at: {"loss": np.float64([value])} for at, value in enumerate(values)}
    return MemoryStore(trial(steps, {"losses": ["loss"]}, ended=ended))


def test_an_evaluation_writes_all_that_was_measured(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Above]), losses(0.5, 0.75, 2.0, 0.5)).run()
    (rule,) = done.result.rules
    assert (rule.status, rule.evidence[0].measured, rule.evidence[0].note) == (
        "IssuesFound",
        2.0,
        "High.",
    )
    record = decode_measurements((tmp_path / "measurements.json").read_bytes()).of("Above")
    assert record is not None
    (series,) = record.series
    assert (series.steps, series.measured, series.met) == ([0, 1, 2], [0.5, 0.75, 2.0], [2])


class Silence(Above):
    """Met when nothing comes after step 1."""

    asked: list[int]

    def __init__(self, base_trial: object) -> None:
        super().__init__(base_trial)
        self.asked = []

    def invoke_while_waiting(self, step: int) -> bool:
        self.asked.append(step)
        return len(self.asked) > 2 and self.found(step, note="Nothing came.")


def test_a_rule_may_judge_that_nothing_comes(tmp_path: Path) -> None:
    clock = WoundClock()
    config = configured(tmp_path, [Silence, Above])
    done = runner(config, losses(0.5, 0.5, ended=False), Script(clock)).run()
    silence, above = done.result.rules
    assert (silence.status, silence.step, silence.evidence[0].note) == (
        "IssuesFound",
        1,
        "Nothing came.",
    )
    assert above.status == "Stopped"


def test_a_trial_without_a_step_has_no_silence(tmp_path: Path) -> None:
    config = configured(tmp_path, [Silence], idle_timeout=100.0)
    files = {"collections/000000000/worker_0_collections.json": b""}
    done = runner(config, MemoryStore(files), Script(WoundClock())).run()
    assert done.result.rules[0].status == "Stopped"


class Silent(Above):
    def invoke_while_waiting(self, step: int) -> bool:
        msg = f"No clock at {step}."
        raise ValueError(msg)


def test_a_rule_that_raises_while_it_waits_fails(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Silent]), losses(0.5, ended=False)).run()
    (rule,) = done.result.rules
    assert (rule.status, rule.status_details) == (
        "Error",
        "ClientError: Rule 'Silent' raised ValueError at step 0: No clock at 0.",
    )


class Ends(Above):
    """Reports at the end what `answer` is."""

    answer: Any = False
    asked: list[int]

    def __init__(self, base_trial: object) -> None:
        super().__init__(base_trial)
        type(self).asked = []

    def invoke_at_end(self, step: int) -> Any:
        self.asked.append(step)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer and self.measured(step, "end", 3.0, 2.0, met=True)


class Finds(Ends):
    answer = True


class Breaks(Ends):
    answer = OSError("no room")


def test_every_rule_may_do_what_is_left(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Ends]), losses(0.5, 2.0, 0.5)).run()
    assert Ends.asked == [1]
    assert done.result.rules[0].evidence[0].step == 1


def test_what_is_found_at_the_end_counts(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Finds]), losses(0.5, 0.5)).run()
    (rule,) = done.result.rules
    assert (rule.status, rule.step, rule.evidence[0].measured) == ("IssuesFound", 1, 3.0)
    assert (rule.coverage.judged, rule.coverage.known, rule.coverage.skipped) == (2, 2, {})
    assert [one["step"] for one in json_lines(tmp_path / "findings.jsonl")] == [1]


class FindsOnly(Finds):
    def invoke_at_step(self, step: int) -> bool:
        return self.not_judged(f"not yet at {step}")


def test_a_step_that_is_judged_at_the_end_only_is_not_skipped(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [FindsOnly]), losses(0.5, 0.5)).run()
    (rule,) = done.result.rules
    assert (rule.status, rule.coverage.judged, rule.coverage.skipped) == (
        "IssuesFound",
        1,
        {"not yet at 0": 1},
    )


class MeasuresOnly(FindsOnly):
    def invoke_at_end(self, step: int) -> bool:
        return self.measured(step, "end", 1.0, 2.0, met=False)


def test_what_is_measured_at_the_end_is_judged(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [MeasuresOnly]), losses(0.5, 0.5)).run()
    (rule,) = done.result.rules
    assert (rule.status, rule.coverage.judged) == ("NoIssuesFound", 1)


def test_a_running_trial_has_no_end_yet(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Finds]), losses(0.5, ended=False)).run()
    assert (done.result.rules[0].status, Finds.asked) == ("Stopped", [0])


def test_after_a_verdict_nothing_is_added(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Finds]), losses(2.0)).run()
    assert [one.note for one in done.result.rules[0].evidence] == ["High."]


def test_what_is_raised_at_the_end_is_the_rules_error(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Breaks]), losses(0.5)).run()
    assert (done.result.rules[0].status, done.result.rules[0].status_details) == (
        "Error",
        "ClientError: Rule 'Breaks' raised OSError at step 0: no room.",
    )


def test_after_a_verdict_it_is_a_note(tmp_path: Path) -> None:
    done = runner(configured(tmp_path, [Breaks]), losses(2.0)).run()
    (rule,) = done.result.rules
    assert rule.status == "IssuesFound"
    assert rule.notes == ["Rule 'Breaks' raised OSError at step 0: no room."]


def test_each_segment_is_a_series_of_its_own() -> None:
    kept = Measurements([LOSS])
    kept.add(points(5.0, 0.5, start=3))
    kept.add([*points(2.0, start=global_step(1, 2))])
    first, second = kept.record().series
    assert (first.steps, first.measured, first.segment) == ([3, 4], [5.0, 0.5], msgspec.UNSET)
    assert (second.steps, second.measured, second.segment) == ([2], [2.0], 1)
    assert "segment" not in dump_json(first)
