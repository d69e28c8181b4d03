"""The declared parameters of rules: what each type takes, refuses, and says about itself."""

import enum
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.params import (
    BoolParam,
    ChoiceParam,
    FloatParam,
    IntParam,
    NamesParam,
    Param,
    PatternsParam,
    TextParam,
    did_you_mean,
    nearest,
    parse_params,
)

THRESHOLD = FloatParam("threshold", "Floor of the mean.", 1e-7, "loss per weight", minimum=0.0)
SHARE = FloatParam("share", "A share.", minimum=0, maximum=1, maximum_open=True)
POSITIVE = FloatParam("factor", "A factor.", minimum=0, minimum_open=True)
BELOW = FloatParam("below", "A number.", maximum=2.5)
COUNT = IntParam("num_steps", "Distance in steps.", 10, "steps", minimum=1)
FLAG = BoolParam("use_losses_collection", "Whether the losses are read.", True)
MODE = ChoiceParam("mode", "Steps of which mode.", "GLOBAL", choices=("TRAIN", "EVAL", "GLOBAL"))
NAMES = NamesParam("collection_names", "Which collections.", ("losses",))
PATTERNS = PatternsParam("tensor_regex", "Which tensors.")
PREFIX = TextParam("prefix", "Which jobs.", pattern="[a-z-]+", allowed="letters and hyphens")


class Mode(enum.Enum):
    EVAL = 1


@pytest.mark.parametrize(
    ("param", "raw", "expected"),
    [
        pytest.param(THRESHOLD, "0.5", 0.5, id="text"),
        pytest.param(THRESHOLD, " 1e-3 ", 1e-3, id="blanks"),
        pytest.param(THRESHOLD, "0", 0.0, id="closed-bound"),
        pytest.param(THRESHOLD, 2, 2.0, id="int-for-float"),
        pytest.param(THRESHOLD, np.float32(0.25), 0.25, id="numpy-float"),
        pytest.param(THRESHOLD, np.int64(3), 3.0, id="numpy-int"),
        pytest.param(THRESHOLD, Fraction(1, 4), 0.25, id="fraction"),
        pytest.param(SHARE, "0.999", 0.999, id="below-open-bound"),
        pytest.param(COUNT, "10", 10, id="int"),
        pytest.param(COUNT, "10.0", 10, id="int-with-point"),
        pytest.param(COUNT, "1e3", 1000, id="int-with-exponent"),
        pytest.param(COUNT, 7.0, 7, id="float-for-int"),
        pytest.param(COUNT, "9007199254740993", 9007199254740993, id="beyond-float"),
        pytest.param(FLAG, "True", True, id="True"),
        pytest.param(FLAG, "YES", True, id="YES"),
        pytest.param(FLAG, " 1", True, id="1"),
        pytest.param(FLAG, "false", False, id="false"),
        pytest.param(FLAG, "No", False, id="No"),
        pytest.param(FLAG, "0", False, id="0"),
        pytest.param(FLAG, False, False, id="bool"),
        pytest.param(FLAG, np.False_, False, id="numpy-bool"),
        pytest.param(FLAG, 0, False, id="zero"),
        pytest.param(MODE, "train", "TRAIN", id="choice-any-case"),
        pytest.param(MODE, " EVAL ", "EVAL", id="choice-blanks"),
        pytest.param(MODE, Mode.EVAL, "EVAL", id="choice-enum"),
        pytest.param(NAMES, "losses", ("losses",), id="one-name"),
        pytest.param(NAMES, "loss, losses,,", ("loss", "losses"), id="names"),
        pytest.param(NAMES, ["a,b", " c "], ("a,b", "c"), id="list-keeps-commas"),
        pytest.param(NAMES, ("a", ["b"]), ("a", "b"), id="nested"),
        pytest.param(NAMES, [], (), id="empty-list"),
        pytest.param(PATTERNS, ".*loss,^conv", (".*loss", "^conv"), id="patterns"),
        pytest.param(PATTERNS, ["a{1,3}"], ("a{1,3}",), id="pattern-with-comma"),
        pytest.param(PREFIX, " my-job ", "my-job", id="word"),
    ],
)
def test_value_taken(param: Param, raw: object, expected: object) -> None:
    value = param.parse(raw)
    assert (expected, type(expected)) == (value, type(value))


@pytest.mark.parametrize("raw", [None, "", "None", "  ", " None "], ids=repr)
@pytest.mark.parametrize(
    ("param", "expected"), [(THRESHOLD, 1e-7), (COUNT, 10), (NAMES, ("losses",)), (PATTERNS, None)]
)
def test_not_given_is_the_default(param: Param, raw: object, expected: object) -> None:
    assert expected == param.parse(raw)


@pytest.mark.parametrize(
    ("param", "raw", "sentence"),
    [
        (THRESHOLD, "abc", "'threshold' must be a finite number >= 0, got 'abc'."),
        (THRESHOLD, "-1", "'threshold' must be a finite number >= 0, got '-1'."),
        (THRESHOLD, "nan", "'threshold' must be a finite number >= 0, got 'nan'."),
        (THRESHOLD, "inf", "'threshold' must be a finite number >= 0, got 'inf'."),
        (THRESHOLD, math.inf, "'threshold' must be a finite number >= 0, got inf."),
        (THRESHOLD, True, "'threshold' must be a finite number >= 0, got True."),
        (THRESHOLD, [1], "'threshold' must be a finite number >= 0, got [1]."),
        (SHARE, "1", "'share' must be a finite number in [0, 1), got '1'."),
        (POSITIVE, 0, "'factor' must be a finite number > 0, got 0."),
        (BELOW, 3, "'below' must be a finite number <= 2.5, got 3."),
        (COUNT, "2.5", "'num_steps' must be a whole number >= 1, got '2.5'."),
        (COUNT, 0.5, "'num_steps' must be a whole number >= 1, got 0.5."),
        (COUNT, "inf", "'num_steps' must be a whole number >= 1, got 'inf'."),
        (COUNT, "nan", "'num_steps' must be a whole number >= 1, got 'nan'."),
        (COUNT, "0", "'num_steps' must be a whole number >= 1, got '0'."),
        (COUNT, False, "'num_steps' must be a whole number >= 1, got False."),
        (
            FLAG,
            "maybe",
            "'use_losses_collection' must be true, false, 1, 0, yes or no, got 'maybe'.",
        ),
        (FLAG, 2, "'use_losses_collection' must be true, false, 1, 0, yes or no, got 2."),
        (MODE, "TEST", "'mode' must be one of 'TRAIN', 'EVAL', 'GLOBAL', got 'TEST'."),
        (PREFIX, "my_job", "'prefix' must be letters and hyphens, got 'my_job'."),
        (PREFIX, "a\nb", "'prefix' must be letters and hyphens, got 'a\\nb'."),
        (PREFIX, 3, "'prefix' must be letters and hyphens, got 3."),
        (NAMES, ",", "'collection_names' must be comma-separated names, got ','."),
        (NAMES, 3, "'collection_names' must be comma-separated names, got 3."),
        (NAMES, ["a", 3], "'collection_names' must be comma-separated names, got ['a'"),
        (
            PATTERNS,
            "ok,(",
            (
                "'tensor_regex' must be comma-separated regular expressions, got '(': "
                "missing ), unterminated subpattern at position 0."
            ),
        ),
    ],
)
def test_value_refused(param: Param, raw: object, sentence: str) -> None:
    with pytest.raises(SMDebugValueError, match="^Parameter " + re.escape(sentence)):
        param.parse(raw)


def test_huge_whole_number_is_refused_where_a_float_is_wanted() -> None:
    with pytest.raises(SMDebugValueError, match="must be a finite number"):
        FloatParam("x", "").parse(10**400)


@pytest.mark.parametrize("raw", [None, "", "None"], ids=repr)
def test_required_and_not_given(raw: object) -> None:
    param = FloatParam("threshold", "", required=True, minimum=0)
    sentence = r"^Parameter 'threshold' is required: a finite number >= 0\.$"
    with pytest.raises(SMDebugValueError, match=sentence):
        param.parse(raw)


def test_required_names_must_hold_one() -> None:
    with pytest.raises(SMDebugValueError, match=r"got \[\]\."):
        NamesParam("names", "", required=True).parse([])


def test_default_is_parsed_like_any_value() -> None:
    assert FloatParam("x", "", 1).default == 1.0
    assert NamesParam("x", "", "a, b").default == ("a", "b")
    with pytest.raises(SMDebugValueError, match=r"'x' must be a finite number >= 0, got -1\."):
        FloatParam("x", "", -1, minimum=0)


@pytest.mark.parametrize(
    ("param", "type_name", "range_text", "default_text"),
    [
        (THRESHOLD, "float", ">= 0", "1e-07"),
        (SHARE, "float", "in [0, 1)", "none"),
        (POSITIVE, "float", "> 0", "none"),
        (BELOW, "float", "<= 2.5", "none"),
        (FloatParam("x", "", maximum=60000000, maximum_open=True), "float", "< 60000000", "none"),
        (FloatParam("x", "", required=True), "float", "", "required"),
        (COUNT, "int", ">= 1", "10"),
        (FLAG, "bool", "", "True"),
        (MODE, "choice", "TRAIN, EVAL, GLOBAL", "GLOBAL"),
        (NamesParam("x", "", ("a", "b")), "names", "", "a,b"),
        (NamesParam("x", "", ()), "names", "", "none"),
        (PATTERNS, "patterns", "", "none"),
    ],
)
def test_description(param: Param, type_name: str, range_text: str, default_text: str) -> None:
    expected = (type_name, range_text, default_text)
    assert expected == (param.type_name, param.range_text, param.default_text)


def test_parse_params_fills_in_the_defaults() -> None:
    values = parse_params((THRESHOLD, COUNT, PATTERNS), {"num_steps": "5"}, "SomeRule")
    assert values == {"threshold": 1e-7, "num_steps": 5, "tensor_regex": None}


@pytest.mark.parametrize(
    ("params", "name", "sentence"),
    [
        pytest.param(
            (THRESHOLD, COUNT),
            "treshold",
            "Unknown parameter 'treshold' of rule 'VanishingGradient'. Did you mean 'threshold'? "
            "Its parameters: 'threshold', 'num_steps'.",
            id="near",
        ),
        pytest.param(
            (THRESHOLD,),
            "colour",
            "Unknown parameter 'colour' of rule 'VanishingGradient'. Its parameters: 'threshold'.",
            id="far",
        ),
        pytest.param(
            (),
            "threshold",
            "Unknown parameter 'threshold' of rule 'VanishingGradient'. It has no parameters.",
            id="none",
        ),
    ],
)
def test_unknown_parameter(params: tuple[Param, ...], name: str, sentence: str) -> None:
    with pytest.raises(SMDebugValueError, match=f"^{re.escape(sentence)}$"):
        parse_params(params, {name: "1"}, "VanishingGradient")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("vanishinggradent", "VanishingGradient"), ("ALLZERO", "AllZero"), ("Overfit", None)],
)
def test_nearest(name: str, expected: str | None) -> None:
    assert expected == nearest(name, ["AllZero", "VanishingGradient"])


def test_did_you_mean_says_nothing_without_a_near_name() -> None:
    assert did_you_mean("tresh", ["threshold"]) == " Did you mean 'threshold'?"
    assert did_you_mean("xyz", ["threshold"]) == ""


def test_base_class_takes_nothing() -> None:
    with pytest.raises(NotImplementedError):
        Param("x", "", 1)
    with pytest.raises(AttributeError, match="noun"):
        Param("x", "", required=True).parse(None)
