import json
from collections.abc import Callable
from typing import Any

import answers
import pytest
from recorded import SHARED, agrees

from smdebug.core.reduction_config import ReductionConfig, flag
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

RECORDED = SHARED / "h_saveconfig" / "expected.json"


def file_object(reductions: str = "", *, raw: bool = False, shape: bool = False) -> dict[str, Any]:
    return {"save_raw_tensor": raw, "reductions": reductions, "save_shape": shape}


def test_nothing_is_the_default() -> None:
    config = ReductionConfig()
    assert config.to_json_dict() == file_object()
    assert config.wanted == ()


def test_the_order_is_that_of_a_file() -> None:
    config = ReductionConfig(
        reductions=["prod", "min", "prod"],
        abs_reductions="variance, mean",
        norms="l2",
        abs_norms=("l1",),
        save_raw_tensor=True,
        save_shape=True,
    )
    assert config.wanted == (
        ("prod", False),
        ("min", False),
        ("l2", False),
        ("variance", True),
        ("mean", True),
        ("l1", True),
    )
    text = "prod,min,l2_norm,abs_variance,abs_mean,abs_l1_norm"
    assert config.to_json_dict() == file_object(text, raw=True, shape=True)
    assert ReductionConfig.from_dict(config.to_json_dict()) == config


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, file_object()),
        ({"other": 1, "reductions": None, "save_shape": None}, file_object()),
        (
            {"reductions": "min, abs_mean,l1_norm,abs_l2_norm, "},
            file_object("min,l1_norm,abs_mean,abs_l2_norm"),
        ),
        ({"reductions": ["abs_max", "std"]}, file_object("std,abs_max")),
        ({"save_shape": True}, file_object(shape=True)),
        ({"save_raw_tensor": "True", "save_shape": "false"}, file_object(raw=True)),
        ({"save_raw_tensor": 0, "save_shape": "YES"}, file_object(shape=True)),
        (None, file_object(raw=True)),
        (ReductionConfig(norms=["l1"]), file_object("l1_norm")),
    ],
)
def test_what_users_give_is_parsed(given: object, expected: dict[str, Any]) -> None:
    assert ReductionConfig.parse(given).to_json_dict() == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ReductionConfig(reductions=["median"]),
            "reductions must be among min, max, mean, std, variance, sum, prod, got 'median'.",
        ),
        (lambda: ReductionConfig(abs_reductions="abs_min"), "abs_reductions .*, got 'abs_min'."),
        (lambda: ReductionConfig(norms=["max"]), "norms must be among l1, l2, got 'max'."),
        (lambda: ReductionConfig(abs_norms="l3"), "abs_norms must be among l1, l2, got 'l3'."),
        (lambda: ReductionConfig(norms=[1]), r"norms must be a list of names, got \[1\]."),
        (lambda: ReductionConfig(norms=5), "norms must be a list of names, got 5."),
        (
            lambda: ReductionConfig(save_raw_tensor="True"),
            "save_raw_tensor must be True or False, got 'True'.",
        ),
        (lambda: ReductionConfig(save_shape=1), "save_shape must be True or False, got 1."),
        (
            lambda: ReductionConfig.from_dict({"reductions": "abs_l1"}),
            "A norm among reductions must end in '_norm', got 'abs_l1'.",
        ),
        (lambda: ReductionConfig.from_dict({"reductions": "max_norm"}), "norms .*, got 'max'."),
        (lambda: ReductionConfig.from_dict({"reductions": "MIN"}), "reductions .*, got 'MIN'."),
        (
            lambda: ReductionConfig.from_dict({"save_shape": "maybe"}),
            "save_shape must be true or false, got 'maybe'.",
        ),
    ],
)
def test_what_is_unknown_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SMDebugValueError, match=f"^{message}$"):
        make()


def test_only_configurations_are_parsed() -> None:
    with pytest.raises(SMDebugTypeError, match=r"^A reduction configuration must .*, got 5\.$"):
        ReductionConfig.parse(5)


def test_configurations_are_compared_by_content() -> None:
    assert ReductionConfig("min,max") == ReductionConfig(["min", "max"])
    assert hash(ReductionConfig("min")) == hash(ReductionConfig("min"))
    assert ReductionConfig("min") != ReductionConfig("max")
    assert repr(ReductionConfig("min", save_shape=True)) == (
        "ReductionConfig(reductions=('min',), abs_reductions=(), norms=(), abs_norms=(), "
        "save_raw_tensor=False, save_shape=True)"
    )


@pytest.mark.parametrize("value", [True, "True", "true", "TRUE", "yes", "1", 1], ids=repr)
def test_truth_may_be_text(value: object) -> None:
    assert flag("save_all", value) is True


@pytest.mark.parametrize("value", [False, "False", "false", "no", "0", 0], ids=repr)
def test_falsehood_may_be_text(value: object) -> None:
    assert flag("save_all", value) is False


CALLS: dict[str, Callable[[], object]] = {
    "ReductionConfig(reductions=['median'])": lambda: ReductionConfig(reductions=["median"]),
    "ReductionConfig(norms=['max'])": lambda: ReductionConfig(norms=["max"]),
    "ReductionConfig(save_raw_tensor='True')": lambda: ReductionConfig(save_raw_tensor="True"),  # type: ignore[arg-type]  # the error is the point
    "ReductionConfig.from_dict({'reductions': 'l1'})": lambda: ReductionConfig.from_dict(
        {"reductions": "l1"}
    ),
    "ReductionConfig.from_dict({'reductions': 'min, abs_mean,l1_norm,abs_l2_norm, '})"
    ".to_json_dict()": lambda: ReductionConfig.from_dict(
        {"reductions": "min, abs_mean,l1_norm,abs_l2_norm, "}
    ).to_json_dict(),
    "ReductionConfig.from_dict({'save_raw_tensor': 'true'})": lambda: ReductionConfig.from_dict(
        {"save_raw_tensor": "true"}
    ).to_json_dict(),
    "ReductionConfig.from_dict({'save_shape': True}).to_json_dict()": lambda: (
        ReductionConfig.from_dict({"save_shape": True}).to_json_dict()
    ),
}
# SageMaker writes truth values as text; the old library refused them.
ANSWERED = {"ReductionConfig.from_dict({'save_raw_tensor': 'true'})": file_object(raw=True)}


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_answered_as_recorded(call: str) -> None:
    if not RECORDED.exists():
        pytest.skip(f"No {RECORDED}; RULE_RUNNER_SHARED names another folder.")
    calls = json.loads(RECORDED.read_text(encoding="utf-8"))["extra"]["calls"]
    got = answers.within(CALLS[call], 20)
    if call in ANSWERED:
        assert not agrees(dict(calls)[call], got)
        assert got == answers.encode(ANSWERED[call])
    else:
        assert agrees(dict(calls)[call], got)
