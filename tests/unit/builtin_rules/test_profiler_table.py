"""Every profiler rule: its file, its documentation, its parameters; and jobs without anything."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import cpu, gpu, io_wait
from recorded import MISSING, shared_folder

from builtin_rules import RULES
from builtin_rules.profiler.gpu_memory_increase import GPUMemoryIncrease
from builtin_rules.profiler_table import PROFILER_RULES
from builtin_rules.rule_page import rule_page
from builtin_rules.statistics.tensor_selection import LITERAL
from rule_core.rules.params import Param
from rule_core.rules.rule import Rule

SPEC = shared_folder() / "spec" / "builtin_rules.json"
REPORT = "profiler_report"  # whose package is builtin_rules.reports.profiler
# Parameters that are not documented: what is judged beyond the documented definition.
OURS = {LITERAL, GPUMemoryIncrease.PARAMS[-1]}
# As documented for the service; the type of a number is ours, which takes fractions as well.
TYPES = {"Integer": {"int", "number"}, "Float": {"float"}, "String": {"text"}}
SUMMARIES = {"OverallSystemUsage", "OverallFrameworkMetrics"}
# The report has tests of its own: it is made of the others.
ALONE = [name for name in PROFILER_RULES if name != "ProfilerReport"]
every_rule = pytest.mark.parametrize("rule", ALONE)


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def params_of(rule: str) -> list[Param]:
    return [one for one in PROFILER_RULES[rule].PARAMS if one not in OURS]


def documented(rule: str) -> dict[str, dict[str, Any]]:
    if not SPEC.is_file():
        pytest.skip(MISSING)
    spec = json.loads(SPEC.read_text())
    if rule not in spec:
        pytest.skip(f"{rule} is ours, not the service's")
    parameters = spec[rule]["parameters"]
    return {one["name"]: one for one in parameters if one["name"] != "base_trial"}


def test_every_file_with_a_rule_is_in_the_table() -> None:
    folder = Path(inspect.getfile(PROFILER_RULES["BatchSize"])).parent
    files = {path.stem for path in [*folder.glob("*.py"), *folder.glob("traces/*.py")]}
    assert {snake_case(name) for name in PROFILER_RULES} - {REPORT} <= files
    assert list(PROFILER_RULES) == sorted(PROFILER_RULES, key=str.casefold)


@every_rule
def test_a_rule_says_what_it_judges(rule: str) -> None:
    rule_class = PROFILER_RULES[rule]
    module = inspect.getdoc(inspect.getmodule(rule_class)) or ""
    module_name = snake_case(rule)
    place = "reports.profiler.rule" if module_name == REPORT else module_name
    parents = {"", "profiler.", "profiler.traces."}
    assert rule_class.__module__ in {f"builtin_rules.{parent}{place}" for parent in parents}
    assert re.fullmatch(rf"{rule}: (GPUs |[a-z]).*\.", module.splitlines()[0])
    assert (rule_class.__doc__ or "").startswith(("Met when ", "Never met"))
    assert re.fullmatch(r"(the|every) .*\.", rule_class.READS)
    assert rule_page(rule_class).why


@every_rule
def test_parameters_are_the_documented_ones_with_the_defaults_of_the_container(rule: str) -> None:
    spec = documented(rule)
    expected = {
        name: one.get("default_by_source", {}).get("container", one["default"])
        for name, one in spec.items()
    }
    assert {one.name: one.default for one in params_of(rule)} == expected
    for one in params_of(rule):
        assert one.type_name in TYPES[spec[one.name]["type"].split()[0]]


@every_rule
def test_the_constructor_takes_the_declared_parameters(rule: str) -> None:
    signature = inspect.signature(PROFILER_RULES[rule]).parameters
    given = {name: one.default for name, one in signature.items() if name != "base_trial"}
    assert given == {one.name: one.default for one in PROFILER_RULES[rule].PARAMS}


@every_rule
def test_the_report_names_the_parameters_by_value(rule: str) -> None:
    trial = FakeProfilerTrial(cpu([1.0]))
    lines = judge_windows(PROFILER_RULES[rule], trial).report["RuleParameters"].splitlines()
    names = [line.partition(":")[0] for line in lines]
    if rule in SUMMARIES:
        assert names == []
        return
    # Where the report leaves one out, so did the container's.
    assert set(names) - {"threshold"} <= {one.name for one in PROFILER_RULES[rule].PARAMS}
    assert "scan_interval_us" not in names


@every_rule
def test_a_short_job_on_processors_alone_is_silent(rule: str) -> None:
    series = [
        one([50.0] * 216, f"cpu{at}", node=node)
        for one in (cpu, io_wait)
        for at in range(4)
        for node in ("algo-1", "algo-2")
    ]
    judged = judge_windows(PROFILER_RULES[rule], FakeProfilerTrial(*series))
    assert (judged.met, judged.findings, judged.report["RuleTriggered"]) == ([], [], 0)
    # Silence never reads as health.
    assert list(judged.skipped) == ([] if rule == "OverallSystemUsage" else [0, 1])


@every_rule
def test_bad_data_do_not_make_a_rule_fail(rule: str) -> None:
    mad = [float("nan"), float("inf"), -1e300, 1e300, 120.0, -5.0] * 40
    series = [gpu(mad, f"gpu{at}", begin_s=at, every_s=0.01) for at in range(2)]
    events = [event("Step:ModeKeys.TRAIN", at, 0.0, phase="", node="") for at in range(150)]
    trial = FakeProfilerTrial(
        *series,
        gpu([], "gpu9"),
        cpu(mad),
        io_wait([1.0], None),
        cpu([1.0], begin_s=500.0),
        events=[*events, event("DataLoaderWorker", 30.0, 0.0), event("x", -1e6, 1e6 + 50)],
    )
    judge_windows(PROFILER_RULES[rule], trial)


@pytest.mark.parametrize("rule", [*RULES.values(), *PROFILER_RULES.values()])
def test_every_rule_states_its_severity_and_why(rule: type[Rule]) -> None:
    declaring = next(ancestor for ancestor in rule.__mro__ if "SEVERITY" in vars(ancestor))
    assert declaring is not Rule
    reason = rule_page(rule).severity
    assert rule.SEVERITY in reason.lower() or "It finds nothing by itself." in reason
