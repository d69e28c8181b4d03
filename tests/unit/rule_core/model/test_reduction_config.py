import json
from collections.abc import Callable
from typing import Any

import answers
import pytest
from recorded import MISSING, SHARED, agrees

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.reduction_config import ReductionConfig, flag

RECORDED = SHARED / "h_saveconfig" / "expected.json"


def file_object(reductions: str = "", *, raw: bool = False, shape: bool = False) -> dict[str, Any]:
    return {"save_raw_tensor": raw, "reductions": reductions, "save_shape": shape}


def test_nothing_is_the_default() -> None:
    config = ReductionConfig()
    assert config.to_json_dict() == file_object()
    assert config.wanted == ()


def test_names_are_lists_that_can_be_changed() -> None:
    names = ["min"]
    config = ReductionConfig(reductions=names, norms="l1", abs_reductions=("max", "max"))
    names.append("prod")
    assert (config.reductions, config.norms) == (["min"], ["l1"])
    assert (config.abs_reductions, config.abs_norms) == (["max"], [])
    config.reductions.append("mean")
    config.abs_norms = ("l2",)  # type: ignore[assignment]  # any names
    config.save_shape = True
    assert config.reductions == ["min", "mean"]
    assert config.abs_norms == ["l2"]
    assert config.to_json_dict() == file_object("min,mean,l1_norm,abs_max,abs_l2_norm", shape=True)


def test_a_changed_configuration_stays_checked() -> None:
    config = ReductionConfig(reductions=["min"])
    with pytest.raises(SMDebugValueError, match=r"^norms must be among l1, l2, got 'l3'\.$"):
        config.norms = ["l3"]
    with pytest.raises(SMDebugValueError, match=r"^save_shape must be True or False, got 'no'\.$"):
        config.save_shape = "no"  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        config.reduction = ["min"]  # type: ignore[attr-defined]  # misspelt
    config.reductions.append("meen")
    with pytest.raises(SMDebugValueError, match=r"^reductions must be among .*, got 'meen'\.$"):
        _ = config.wanted


# What smdebug 1.0.34 writes.
OLD_JSON = (
    '{"save_raw_tensor": false, "reductions": "min,l1_norm,abs_l2_norm", "save_shape": false}'
)


def test_json_makes_a_round_trip_and_is_that_of_old() -> None:
    config = ReductionConfig(reductions=["min"], norms=["l1"], abs_norms=["l2"])
    assert config.to_json() == OLD_JSON
    assert ReductionConfig.from_json(OLD_JSON) == config
    medians = ReductionConfig(reductions=["median", "max"], abs_reductions=["median"])
    assert ReductionConfig.from_json(medians.to_json()) == medians
    assert ReductionConfig.from_json('{"reductions": "median"}').reductions == ["median"]


def test_configurations_that_save_the_same_are_equal() -> None:
    config = ReductionConfig(reductions=["median", "mean"])
    assert config == ReductionConfig(reductions="mean,median,mean")
    assert config != ReductionConfig(abs_reductions=["median", "mean"])
    assert config != ReductionConfig(reductions=["median", "mean"], save_shape=True)
    assert config != ReductionConfig(reductions=["median"])
    assert config != config.to_json_dict()


@pytest.mark.parametrize("text", ["", "[]", "null", '{"reductions":', '{"reductions": "meen"}', 3])
def test_json_of_anything_else_is_rejected(text: Any) -> None:
    with pytest.raises(SMDebugValueError):
        ReductionConfig.from_json(text)


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


def test_norms_without_a_suffix_are_reductions_too() -> None:
    config = ReductionConfig.from_dict({"reductions": "mean,l1,abs_l2"})
    assert config == ReductionConfig(["mean"], norms=["l1"], abs_norms=["l2"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ReductionConfig(reductions=["mode"]),
            (
                "reductions must be among "
                "min, max, mean, std, variance, sum, prod, median, got 'mode'."
            ),
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
    assert ReductionConfig("min") != ReductionConfig("max")
    assert repr(ReductionConfig("min", save_shape=True)) == (
        "ReductionConfig(reductions=['min'], abs_reductions=[], norms=[], abs_norms=[], "
        "save_raw_tensor=False, save_shape=True)"
    )


@pytest.mark.parametrize("value", [True, "True", "true", "TRUE", "yes", "1", 1], ids=repr)
def test_truth_may_be_text(value: object) -> None:
    assert flag("save_all", value) is True


@pytest.mark.parametrize("value", [False, "False", "false", "no", "0", 0], ids=repr)
def test_falsehood_may_be_text(value: object) -> None:
    assert flag("save_all", value) is False


CALLS: dict[str, Callable[[], object]] = {
    "ReductionConfig(reductions=['median'])": lambda: ReductionConfig(["median"]).wanted,
    "ReductionConfig(norms=['max'])": lambda: ReductionConfig(norms=["max"]),
    "ReductionConfig(save_raw_tensor='True')": lambda: ReductionConfig(save_raw_tensor="True"),  # type: ignore[arg-type]  # the error is the point
    "ReductionConfig.from_dict({'reductions': 'l1'})": lambda: (
        ReductionConfig.from_dict({"reductions": "l1"}).wanted
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
# SageMaker writes truth values as text, and the documentation has medians and short names of
# norms; smdebug has neither.
ANSWERED: dict[str, object] = {
    "ReductionConfig.from_dict({'save_raw_tensor': 'true'})": file_object(raw=True),
    "ReductionConfig(reductions=['median'])": (("median", False),),
    "ReductionConfig.from_dict({'reductions': 'l1'})": (("l1", False),),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_answered_as_recorded(call: str) -> None:
    if not RECORDED.exists():
        pytest.skip(MISSING)
    calls = json.loads(RECORDED.read_text(encoding="utf-8"))["extra"]["calls"]
    got = answers.within(CALLS[call], 20)
    if call in ANSWERED:
        assert not agrees(dict(calls)[call], got)
        assert got == answers.encode(ANSWERED[call])
    else:
        assert agrees(dict(calls)[call], got)
