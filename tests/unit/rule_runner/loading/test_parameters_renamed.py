"""Parameters of the profiler report on their way to it: names in any case, and those in a dict."""

import pytest

from rule_runner.debugger import rule_configs
from rule_runner.errors import ParameterError
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import accepts, bind


@pytest.mark.parametrize(
    "raw",
    [
        {"CPUBottleneck_threshold": "90"},
        {"cpubottleneck_THRESHOLD": "90", "OPT_OUT_TELEMETRY": "True"},
        {"custom_rule_parameters": "{'CPUBottleneck_threshold': '90'}"},
    ],
)
def test_spellings(raw: dict[str, str]) -> None:
    loaded = load_builtin("ProfilerReport")
    assert all(accepts(loaded, name) for name in raw)
    bound = bind(loaded, raw)
    assert (bound.parameters["CPUBottleneck_threshold"], bound.warnings) == (90, ())
    assert bound.parameters["custom_rule_parameters"] is None
    assert bound.arguments.pop("opt_out_telemetry", True) is True
    assert bound.arguments == {"CPUBottleneck_threshold": 90}


def test_what_the_sdk_sends() -> None:
    sent = rule_configs.ProfilerReport(cpubottleneck_threshold=90, opt_out_telemetry=True)
    texts = {name: str(value) for name, value in sent.rule_parameters.items()}
    assert texts.pop("rule_to_invoke") == "ProfilerReport"
    values = bind(load_builtin("ProfilerReport"), texts).parameters
    assert (values["CPUBottleneck_threshold"], values["opt_out_telemetry"]) == (90, True)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ({"CPUBottleneck_treshold": "1"}, "Did you mean 'CPUBottleneck_threshold'?"),
        ({"custom_rule_parameters": "print(1)"}, "must be the text of a flat Python dict"),
        ({"a": "1", "A": "2"}, "Unknown parameter 'a' of rule 'ProfilerReport'."),
    ],
)
def test_what_is_wrong_is_a_configuration_error(raw: dict[str, str], problem: str) -> None:
    with pytest.raises(ParameterError) as raised:
        bind(load_builtin("ProfilerReport"), raw)
    assert problem in str(raised.value)


def test_other_rules_have_the_names_that_they_declare() -> None:
    loaded = load_builtin("CPUBottleneck")
    assert accepts(loaded, "threshold")
    assert not accepts(loaded, "THRESHOLD")
    with pytest.raises(ParameterError, match="Unknown parameter 'THRESHOLD' of rule"):
        bind(loaded, {"THRESHOLD": "1"})
