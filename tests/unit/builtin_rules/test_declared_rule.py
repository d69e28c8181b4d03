"""DeclaredRule: parameters by position or by name, and constructors of subclasses."""

import inspect
from typing import Any

import pytest

from builtin_rules import AllZero
from smdebug.exceptions import SMDebugValueError


class Strict(AllZero):
    """A rule with a constructor of its own."""

    def __init__(self, base_trial: Any, share: Any = 50) -> None:
        super().__init__(base_trial, "weights", threshold=share)


def test_parameters_are_passed_by_position_or_by_name() -> None:
    rule = AllZero(None, "weights", threshold="90")
    assert (rule.collection_names, rule.tensor_regex, rule.threshold) == (("weights",), (), 90.0)


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
