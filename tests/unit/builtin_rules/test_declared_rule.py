"""DeclaredRule: parameters by position or by name, and constructors of subclasses."""

import inspect
from typing import Any

import pytest

from builtin_rules import AllZero, SimilarAcrossRuns
from builtin_rules.profiler_table import ProfilerReport
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import bind, construct
from smdebug.exceptions import SMDebugValueError


class Strict(AllZero):
    """A rule with a constructor of its own."""

    def __init__(self, base_trial: Any, share: Any = 50) -> None:
        super().__init__(base_trial, "weights", threshold=share)


def test_parameters_are_passed_by_position_or_by_name() -> None:
    rule = AllZero(None, "weights", threshold="90")
    assert (rule.collection_names, rule.tensor_regex, rule.threshold) == (("weights",), (), 90.0)


def test_a_rule_knows_which_parameters_were_given() -> None:
    rule = AllZero(None, "weights", None, threshold=100, literal="")
    assert rule.given == {"collection_names", "threshold"}
    assert rule.binds("threshold", "other")
    assert not rule.binds("other")
    assert AllZero(None, "weights", literal=True).binds("threshold")
    assert Strict(None).given == {"collection_names", "threshold"}
    similar = SimilarAcrossRuns(None, [object()], tensor_regex="loss")
    assert similar.given == {"other_trials", "tensor_regex"}
    assert ProfilerReport(None, stepoutlier_stddev="4").given == {"StepOutlier_stddev"}


@pytest.mark.parametrize(
    ("raw", "given"), [({"threshold": "100"}, {"threshold"}), ({"threshold": "None"}, set())]
)
def test_what_a_job_gives_reaches_the_rule(raw: dict[str, str], given: set[str]) -> None:
    bound = bind(load_builtin("AllZero"), {"tensor_regex": "w", **raw})
    rule = construct(bound, None)
    assert isinstance(rule, AllZero)
    assert rule.given == {"tensor_regex", *given}


def test_a_subclass_has_the_signature_of_its_own_constructor() -> None:
    assert [*inspect.signature(Strict).parameters] == ["base_trial", "share"]
    assert Strict(None).threshold == 50


def test_wrong_arguments_are_rejected() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'treshold'"):
        AllZero(None, "weights", treshold=90)
    with pytest.raises(TypeError, match="too many positional arguments"):
        AllZero(None, "weights", None, 90, False, 1)
    with pytest.raises(SMDebugValueError, match="'threshold' must be"):
        AllZero(None, "weights", threshold=101)
