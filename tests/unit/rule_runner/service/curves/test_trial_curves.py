import json
import logging
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import s3_objects

from rule_core.clock import SystemClock
from rule_runner.errors import TrialError
from rule_runner.service.curves.trial_curves import BYTES_READ, CURVES_KEPT, CurveKind, TrialCurves
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

COLLECTIONS = {
    "losses": "^loss",
    "metrics": "^metric",
    "learning_rates": "^lr",
    "gradient_norms": "^norm",
    "gradients": "^gradient",
}


class Ticking(SystemClock):
    """Each look at the time takes a second of it."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:  # type: ignore[override]
        self.now += 1.0
        return self.now


def curves_of(path: Path) -> TrialCurves:
    curves = TrialCurves(str(path), SystemClock())
    curves.read(10.0, ended=True)
    return curves


def test_scalars_of_a_trial_have_kinds(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "a", collections=COLLECTIONS) as trial:
        for step in range(3):
            values = {
                "loss": [1.0, 3.0],
                "metric/accuracy": 0.5,
                "metric/gpu_utilisation": 70.0,
                "lr": 0.1,
                "norm": 2.0,
                "gradient/fc": [[1.0]],
            }
            trial.step(step, values, mode=ModeKeys.TRAIN)
    curves = curves_of(tmp_path / "a")
    assert curves.kinds == {
        "loss": CurveKind.LOSS,
        "metric/accuracy": CurveKind.METRIC,
        "lr": CurveKind.LEARNING_RATE,
        "norm": CurveKind.NORM,
        "metric/gpu_utilisation": CurveKind.UTILISATION,
    }
    assert curves.points["loss"].values == [2.0, 2.0, 2.0]
    assert (curves.last_step, curves.complete, curves.left_out) == (2, True, 0)


def test_what_is_no_number_is_no_curve(tmp_path: Path) -> None:
    values = {
        "loss/large": np.zeros(BYTES_READ),
        "loss/empty": np.zeros(0),
        "loss/text": np.array(["a"]),
        "loss/half": np.float16(0.5),
        "loss/flag": np.array([True, False]),
    }
    with TrialWriter(tmp_path / "a", collections=COLLECTIONS) as trial:
        trial.step(0, values, mode=ModeKeys.TRAIN)
    points = curves_of(tmp_path / "a").points
    assert {name: curve.values for name, curve in points.items() if curve.steps} == {
        "loss/half": [0.5],
        "loss/flag": [0.5],
    }


def test_a_running_trial_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    clock = Ticking()
    with TrialWriter(tmp_path / "a", collections=COLLECTIONS) as trial:
        trial.step(0, {"loss": 1.0}, mode=ModeKeys.TRAIN)
        curves = TrialCurves(str(tmp_path / "a"), clock)
        curves.read(1000.0)
        assert curves.points["loss"].steps == [0]
        for step in (10, 20):
            trial.step(step, {"loss": 0.5, "lr": 0.1}, mode=ModeKeys.TRAIN)
        curves.read(1000.0)
        assert curves.points["loss"].steps == [0, 10, 20]
        assert curves.points["lr"].steps == [10, 20]


def test_reading_ends_when_its_time_is_over_and_goes_on(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "a", collections=COLLECTIONS) as trial:
        for step in range(30):
            trial.step(step, {"loss": 1.0}, mode=ModeKeys.TRAIN)
    curves = TrialCurves(str(tmp_path / "a"), Ticking())
    counts = []
    while not curves.complete:
        curves.read(9.0)
        counts.append(len(curves.points["loss"].steps))
    assert counts == sorted(set(counts))
    assert counts[-1] == 30
    assert len(counts) > 3


def test_the_last_step_of_a_running_training_may_get_more(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    curves = TrialCurves(str(tmp_path), SystemClock())
    curves.read(10.0)
    assert curves.points["loss"].steps == [1]
    curves.read(10.0, ended=True)
    assert curves.points["loss"].steps == [1, 2]


def test_a_log_of_another_tool_is_read(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("step,loss,lr,GPU util\n1,0.5,0.1,80\n2,nan,0.1,85\n")
    curves = curves_of(tmp_path)
    assert curves.points["loss"].values == [0.5, None]
    assert curves.kinds["lr"] is CurveKind.LEARNING_RATE
    assert curves.kinds["GPU util"] is CurveKind.UTILISATION


def test_a_run_that_was_resumed_shows_what_holds(tmp_path: Path) -> None:
    rows = [(10, 0.5), (20, 0.4), (30, 9.0), (20, 0.3), (30, 0.2)]
    lines = [json.dumps({"step": step, "loss": loss}) for step, loss in rows]
    (tmp_path / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))
    points = curves_of(tmp_path).points["loss"]
    assert dict(zip(points.steps, points.values, strict=True)) == {10: 0.5, 20: 0.3, 30: 0.2}


def test_a_trial_in_s3(aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("werkzeug"), "disabled", True)
    with TrialWriter(tmp_path / "a", collections=COLLECTIONS) as trial:
        for step in range(3):
            trial.step(step, {"loss": 1.0 / (step + 1)}, mode=ModeKeys.TRAIN)
    paths = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in paths}
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/", files)
    curves = TrialCurves("s3://bucket/runs/a", SystemClock())
    while not curves.complete:
        curves.read(0.5)
    assert curves.points["loss"].values == [1.0, 0.5, pytest.approx(1 / 3)]
    with pytest.raises(TrialError, match="does not exist"):
        TrialCurves("s3://bucket/runs/b", SystemClock()).read(0.5)


def test_the_number_of_curves_is_bounded_and_losses_stay(tmp_path: Path) -> None:
    names = [f"a_metric_{number}" for number in range(2 * CURVES_KEPT)]
    header = ",".join(["step", *names, "loss"])
    (tmp_path / "log.csv").write_text(f"{header}\n1{',1' * len(names)},1\n")
    curves = curves_of(tmp_path)
    assert len(curves.points) == CURVES_KEPT
    assert "loss" in curves.points
    assert curves.left_out == CURVES_KEPT + 1


def test_a_damaged_value_leaves_the_others(tmp_path: Path) -> None:
    with TrialWriter(tmp_path / "a", collections=COLLECTIONS) as trial:
        for step in range(3):
            trial.step(step, {"loss": 1.0}, mode=ModeKeys.TRAIN)
    event = sorted((tmp_path / "a" / "events").rglob("*.tfevents"))[1]
    event.write_bytes(b"\0" * event.stat().st_size)
    assert curves_of(tmp_path / "a").points["loss"].steps == [0, 2]


def test_a_trial_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="does not exist"):
        curves_of(tmp_path / "gone")
    with TrialWriter(tmp_path / "a", collections=COLLECTIONS) as trial:
        trial.step(0, {"loss": math.inf}, mode=ModeKeys.TRAIN)
        curves = TrialCurves(str(tmp_path / "a"), Ticking())
        curves.read(1000.0)
        shutil.rmtree(tmp_path / "a")
        with pytest.raises(TrialError, match="does not exist"):
            curves.read(1000.0)
        assert curves.points["loss"].steps == [0]
        (tmp_path / "a").mkdir()
