"""Signatures of the programming model as documented."""

import inspect
from typing import Any

import pytest

from smdebug.analysis.utils import no_refresh, refresh
from smdebug.core.modes import ModeKeys
from smdebug.core.tensor import Tensor
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import Trial, create_trial

# -- signatures -----------------------------------------------------------------------------------

SIGNATURES: dict[str, tuple[Any, str]] = {
    "create_trial": (create_trial, "path, name=None"),
    "tensor": (Trial.tensor, "self, tname"),
    "has_tensor": (Trial.has_tensor, "self, tname"),
    "steps": (Trial.steps, "self"),
    "modes": (Trial.modes, "self"),
    "mode": (Trial.mode, "self, global_step"),
    "mode_step": (Trial.mode_step, "self, global_step"),
    "global_step": (Trial.global_step, "self, mode, mode_step"),
    "workers": (Trial.workers, "self"),
    "collections": (Trial.collections, "self"),
    "collection": (Trial.collection, "self, coll_name"),
    "wait_for_steps": (Trial.wait_for_steps, "self, required_steps, mode=GLOBAL"),
    "has_passed_step": (Trial.has_passed_step, "self, step, mode=GLOBAL"),
    "Tensor.steps": (Tensor.steps, "self, mode=GLOBAL, show_incomplete_steps=False"),
    "Tensor.value": (Tensor.value, "self, step_num, mode=GLOBAL, worker=None"),
    "Tensor.reduction_value": (
        Tensor.reduction_value,
        "self, step_num, reduction_name, mode=GLOBAL, worker=None, abs=False",
    ),
    "Tensor.reduction_values": (
        Tensor.reduction_values,
        "self, step_num, mode=GLOBAL, worker=None",
    ),
    "Tensor.values": (Tensor.values, "self, mode=GLOBAL, worker=None"),
    "Tensor.workers": (Tensor.workers, "self, step_num, mode=GLOBAL"),
    "Tensor.prev_steps": (Tensor.prev_steps, "self, step, n, mode=GLOBAL"),
    "invoke_rule": (
        invoke_rule,
        "rule_obj, start_step=0, end_step=None, raise_eval_cond=False",
    ),
    "Rule.invoke_at_step": (Rule.invoke_at_step, "self, step"),
    "no_refresh": (no_refresh, "trials"),
    "refresh": (refresh, "trials"),
}


def written(parameter: inspect.Parameter) -> str:
    default = parameter.default
    text = "GLOBAL" if default is ModeKeys.GLOBAL else repr(default)
    return f"{parameter.name}={text}"


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    function, promised = SIGNATURES[name]
    parameters = inspect.signature(function).parameters.values()
    for parameter, text in zip(parameters, promised.split(", "), strict=False):
        assert text == (written(parameter) if "=" in text else parameter.name)
    assert len(parameters) >= len(promised.split(", "))
