"""What a trial cannot hold: it is left out, said once, and the hook goes on."""

import logging
from pathlib import Path
from typing import Any

import hooked
import ml_dtypes
import numpy as np
import pytest
from hooked import ONES

from rule_core.exceptions import SMDebugTypeError
from rule_core.model.reduction_config import ReductionConfig
from rule_core.saving.hook import Hook

SURROGATE = "\ud800"
Log = pytest.LogCaptureFixture


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def said(log: Log) -> list[str]:
    """Return what was warned of."""
    return [one.getMessage() for one in log.records if one.levelno == logging.WARNING]


class Odd:
    """What numpy cannot make an array of."""

    def __array__(self, *_: Any, **__: Any) -> None:
        msg = "The device is gone."
        raise RuntimeError(msg)


LEFT_OUT: dict[str, tuple[Any, str]] = {
    "dates": (np.zeros(2, "M8[s]"), r"The trial format cannot hold datetime64\[s\] of shape (2,)."),
    "durations": (
        np.zeros(2, "m8[s]"),
        "The trial format cannot hold timedelta64[s] of shape (2,).",
    ),
    "objects": (np.array([1, {}], object), "The trial format cannot hold object of shape (2,)."),
    "none": (None, "The trial format cannot hold object of shape (1,)."),
    "huge number": (2**70, "The trial format cannot hold object of shape (1,)."),
    "table of texts": ([["a"], ["b"]], "The trial format cannot hold <U1 of shape (2, 1)."),
    "no text": ([SURROGATE], "The trial format cannot hold <U1 of shape (1,)."),
    "no UTF-8": (np.array([b"\xff"]), "The trial format cannot hold |S1 of shape (1,)."),
    "fields": (np.zeros(1, "i4,f4"), "of shape (1,)."),
    "float8": (np.zeros(1, ml_dtypes.float8_e5m2), "cannot hold float8_e5m2 of shape (1,)."),
    "long double": (np.zeros(1, np.longdouble), "cannot hold float128 of shape (1,)."),
    "ragged": (
        [[1], [1, 2]],
        "A value of type list cannot be converted to an array: setting an array",
    ),
    "dead device": (
        Odd(),
        "A value of type Odd cannot be converted to an array: The device is gone.",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_a_trial_cannot_hold_is_left_out_and_said_once(
    name: str, tmp_path: Path, caplog: Log
) -> None:
    value, reason = LEFT_OUT[name]
    with hooked.hook(tmp_path) as hook:
        for _ in range(3):
            hook.save_tensor("good", ONES)
            hook.save_tensor("bad", value)
            hook.step()
        assert not hook.is_off
    assert hooked.records(tmp_path) == {key: ["good"] for key in range(3)}
    (warning,) = said(caplog)
    assert warning.startswith("Tensor 'bad' is not saved. ")
    assert reason.replace("\\", "") in warning
    assert hooked.values(hooked.opened(tmp_path), "good") == {key: [1, 1] for key in range(3)}


@pytest.mark.parametrize("name", ["dates", "objects", "ragged", "dead device", "fields"])
def test_what_cannot_be_reduced_is_left_out_and_said_once(
    name: str, tmp_path: Path, caplog: Log
) -> None:
    config = ReductionConfig(reductions=["max"])
    with hooked.hook(tmp_path, reduction_config=config) as hook:
        for _ in range(2):
            hook.save_tensor("bad", LEFT_OUT[name][0])
            hook.save_tensor("good", ONES)
            hook.step()
    names = ["smdebug/reductions/max/good"]
    assert hooked.records(tmp_path) == dict.fromkeys(range(2), names)
    assert len(said(caplog)) == 1


@pytest.mark.parametrize("bad", [f"a{SURROGATE}b", 7, None, b"bytes"])
def test_a_name_that_no_file_can_hold(tmp_path: Path, caplog: Log, bad: Any) -> None:
    with hooked.hook(tmp_path) as hook:
        for _ in range(2):
            hook.save_tensor("good", ONES)
            hook.save_tensor(bad, ONES)
            hook.save_tensor("elsewhere", ONES, ["fine", bad])
            hook.step()
    assert hooked.records(tmp_path) == {key: ["good"] for key in range(2)}
    assert hooked.members(tmp_path) == {"default": ["good"]}
    assert said(caplog) == [
        f"Tensor {name!r} is not saved. Names must be text that UTF-8 can encode, got {bad!r}."
        for name in (bad, "elsewhere")
    ]


def test_a_huge_name(tmp_path: Path) -> None:
    name = "layer/" * 200_000
    with hooked.hook(tmp_path) as hook:
        hook.save_tensor(name, np.zeros((2, 3)))
    assert hooked.opened(tmp_path).tensor(name).value(0).shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("s", [1, 2], r"A scalar must have one element, got shape (2,)."),
        ("s", [], r"A scalar must have one element, got shape (0,)."),
        ("s", {}, "The trial format cannot hold object of shape (1,)."),
        (
            SURROGATE,
            1,
            rf"Names must be text that UTF-8 can encode, got {'scalar/' + SURROGATE!r}.",
        ),
    ],
    ids=repr,
)
def test_what_is_no_scalar(tmp_path: Path, caplog: Log, name: str, value: Any, reason: str) -> None:
    with Hook(tmp_path, save_config=hooked.ALWAYS) as hook:
        for _ in range(2):
            hook.save_scalar(name, value)
            hook.save_scalar("good", 1.0)
            hook.step()
    assert hooked.records(tmp_path) == {key: ["scalar/good"] for key in range(2)}
    assert said(caplog) == [f"Tensor {'scalar/' + name!r} is not saved. {reason}"]
    with (
        hooked.hook(tmp_path / "strict") as strict,
        pytest.raises(SMDebugTypeError) as raised,
    ):
        strict.save_scalar(name, value)
    assert str(raised.value) == reason
