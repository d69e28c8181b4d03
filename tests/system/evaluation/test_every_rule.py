"""Every built-in rule: its file, its documentation, its parameters and what is printed of them."""

import inspect
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from recorded import MISSING, shared_folder

import builtin_rules
from builtin_rules import RULES
from builtin_rules.profiler_table import PROFILER_RULES
from builtin_rules.statistics.tensor_selection import LITERAL
from rule_core.rules.params import ChoiceParam, FloatParam, Param
from rule_runner.commands.rules import listing
from rule_runner.report.rule_pages import page
from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Rule

SPEC = shared_folder() / "spec" / "builtin_rules.json"
NOT_GIVEN: Final = (None, ())
REPORTS: Final = {"create_xgboost_report"}  # its package is builtin_rules.reports.xgboost
# Ours is wider: zero is accepted ("Accept 0 for the two percentages").
TYPES = {
    "Float": {"float"},
    "Integer": {"int"},
    "Boolean": {"bool"},
    "String": {"choice", "names", "patterns", "text"},
    "List": {"names", "patterns"},
    "Comma-separated": {"names"},
}
ANY_NUMBER = {f"threshold_{kind}_{end}" for kind in ("tanh", "sigmoid") for end in ("min", "max")}
every_rule = pytest.mark.parametrize("rule", [pytest.param(one, id=one) for one in RULES])
every_param = pytest.mark.parametrize(
    ("rule", "param"),
    [
        pytest.param(one, param, id=f"{one}-{param.name}")
        for one in RULES
        for param in RULES[one].PARAMS
    ],
)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def default_of(param: Param) -> Any:
    """Return a default as the documentation has it: lists as text, None for none."""
    if param.default in NOT_GIVEN:
        return None
    return param.default_text if isinstance(param.default, tuple) else param.default


def documented(rule: str) -> dict[str, dict[str, Any]]:
    """Return the documented parameters by name."""
    if not SPEC.is_file():
        pytest.skip(MISSING)
    rules = json.loads(SPEC.read_text())
    if rule not in rules:
        pytest.skip(f"{rule} is none of the documented rules")
    parameters = rules[rule]["parameters"]
    return {one["name"]: one for one in parameters if one["name"] != "base_trial"}


def test_the_table_is_sorted() -> None:
    assert list(RULES) == sorted(RULES)


def test_every_file_with_a_rule_is_in_the_table() -> None:
    folder = Path(builtin_rules.__file__).parent / "tensors"
    files = {
        path.stem
        for path in folder.rglob("*.py")
        if re.search(r"^    READS = ", path.read_text(), re.MULTILINE)
    }
    assert files == {snake_case(name) for name in RULES} - REPORTS


@every_rule
def test_a_rule_is_a_class_of_its_own_file(rule: str) -> None:
    rule_class = RULES[rule]
    assert (rule_class.__name__, issubclass(rule_class, Rule)) == (rule, True)
    module = rule_class.__module__.removeprefix("builtin_rules.")
    if snake_case(rule) not in REPORTS:
        assert module.startswith("tensors.")
        assert module.rpartition(".")[2] == snake_case(rule)


@every_rule
def test_a_rule_says_what_it_judges(rule: str) -> None:
    module = inspect.getdoc(inspect.getmodule(RULES[rule])) or ""
    assert re.fullmatch(rf"{rule}: [a-z].*\.", module.splitlines()[0])
    assert (RULES[rule].__doc__ or "").startswith(("Met when ", "Never met"))
    assert (RULES[rule].invoke_at_step.__doc__ or "").startswith("Judge ")


@every_rule
def test_the_constructor_takes_the_declared_parameters(rule: str) -> None:
    # What is given by keyword only is for tests, such as a clock.
    signature = {
        name: one
        for name, one in inspect.signature(RULES[rule]).parameters.items()
        if one.kind is not one.KEYWORD_ONLY
    }
    given = {name: one.default for name, one in signature.items() if name != "base_trial"}
    # None stands for a default with further patterns: the documented one, given, would be alone.
    declared = {
        one.name: None if getattr(one, "also", ()) else default_of(one)
        for one in RULES[rule].PARAMS
    }
    assert given == declared
    assert list(signature) == ["base_trial", *declared]


@every_param
def test_a_parameter_says_what_it_means(rule: str, param: Param) -> None:
    del rule
    assert re.fullmatch(r"[A-Z].*\.", param.meaning)
    if isinstance(param, FloatParam):
        assert param.unit
        assert param.range_text or param.name in ANY_NUMBER
    if isinstance(param, ChoiceParam):
        assert param.default in param.choices


@every_param
def test_a_default_is_a_value_that_the_parameter_takes(rule: str, param: Param) -> None:
    del rule
    if param.required:
        with pytest.raises(SMDebugValueError, match="is required"):
            param.parse(None)
        return
    also = getattr(param, "also", ())
    assert param.parse(None) == ((*param.default, *also) if also else param.default)
    if param.default not in NOT_GIVEN:
        assert param.parse(param.default_text) == param.default


@every_rule
def test_the_parameters_are_the_documented_ones(rule: str) -> None:
    names = [one.name for one in RULES[rule].PARAMS if one is not LITERAL]
    assert sorted(names) == sorted(documented(rule))


@every_param
def test_type_and_default_are_the_documented_ones(rule: str, param: Param) -> None:
    known = documented(rule)
    if param is LITERAL:
        assert param.name not in known
        return
    spec = known[param.name]
    assert param.type_name in TYPES[spec["type"].split()[0]]
    assert default_of(param) == spec["default"]
    assert param.required is spec["required"]


@every_rule
def test_a_rule_is_listed_and_shown_with_its_parameters(rule: str) -> None:
    (line,) = (one for one in listing() if one.split()[0] == rule)
    assert line.split(maxsplit=1)[1].endswith(".")
    shown = page(rule).replace("\\|", "|").splitlines()
    assert shown[0] == f"# {rule}"
    for param in RULES[rule].PARAMS:
        (row,) = (one for one in shown if one.startswith(f"| `{param.name}` |"))
        assert all(text in row for text in (param.type_name, param.default_text, param.meaning))


def test_the_list_is_the_table() -> None:
    assert [one.split()[0] for one in listing()] == [*RULES, *PROFILER_RULES]


@pytest.mark.parametrize("name", RULES)
def test_a_rule_says_what_it_reads(name: str) -> None:
    assert re.fullmatch(r"(the|every) .*\.", RULES[name].READS)
