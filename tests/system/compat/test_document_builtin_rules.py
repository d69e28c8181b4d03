"""Every documented built-in rule and parameter: its name, type, default, and text as its value."""

import json
from pathlib import Path
from typing import Any

import pytest

from rule_core.rules.params import Param
from rule_runner.debugger import ProfilerRule, Rule, rule_configs
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import bind

RULES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "documented_rules.json").read_text(encoding="utf-8")
)
PARAMETERS = [
    pytest.param(rule, *parameter, id=f"{rule}-{parameter[0]}")
    for rule, documented in RULES.items()
    for parameter in documented["parameters"]
]
# Text that every parameter of a documented type takes, but for those of a smaller range.
TEXTS = {
    "Float": "0.5",
    "Integer": "5",
    "Boolean": "True",
    "String": "losses",
    "List": "a,b",
    "Comma-separated": "a,b",
    "dict": "{'StepOutlier_stddev': 3}",
}
RANGES = {
    "mode": "TRAIN",
    "argmax": "False",
    "action_json": "",
    "feature_importance_type": "weight",
    "stop_training_on_fire": "False",
    "opt_out_telemetry": "True",
    "other_trials": "/other",
}


def param_of(rule: str, name: str) -> Param:
    loaded = load_builtin(rule).rule_class
    return next(param for param in loaded.PARAMS if param.name == name)


def text_for(name: str, kind: str) -> str:
    return RANGES.get(name, TEXTS[kind])


def as_documented(default: Any) -> Any:
    """Return a default as the documents write it: text for patterns and names, None for nothing."""
    if isinstance(default, tuple):
        return ",".join(map(str, default)) or None
    return default


@pytest.mark.parametrize("rule", RULES)
def test_rule_exists(rule: str) -> None:
    assert load_builtin(rule).name == rule


@pytest.mark.parametrize("rule", RULES)
def test_rule_can_be_configured(rule: str) -> None:
    documented = RULES[rule]
    if documented["kind"] == "debug":
        configured: Any = Rule.sagemaker(getattr(rule_configs, documented["factory"])())
        collections = [
            collection._to_request_dict() for collection in configured.collection_configs
        ]
        assert [collection["CollectionName"] for collection in collections] == documented[
            "collections"
        ]
    else:
        configured = ProfilerRule.sagemaker(getattr(rule_configs, rule)())
    assert configured.rule_parameters["rule_to_invoke"] == rule


@pytest.mark.parametrize(("rule", "name", "kind", "required", "default"), PARAMETERS)
def test_parameter(rule: str, name: str, kind: str, required: bool, default: Any) -> None:
    if name == "other_trials":
        assert load_builtin(rule).rule_class
        return
    del kind
    param = param_of(rule, name)
    assert param.required is required
    assert as_documented(param.default) == default


@pytest.mark.parametrize(("rule", "name", "kind", "required", "default"), PARAMETERS)
def test_parameter_is_text(rule: str, name: str, kind: str, required: bool, default: Any) -> None:
    del required
    needed = {row[0]: text_for(*row[:2]) for row in RULES[rule]["parameters"] if row[2]}
    text = str(default) if default is not None else text_for(name, kind)
    bind(load_builtin(rule), {**needed, name: text})
