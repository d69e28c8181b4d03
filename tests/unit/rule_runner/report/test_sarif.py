"""SARIF: valid against its schema whatever happened, a result a finding, silence never health."""

import json
from pathlib import Path
from typing import Any

import evaluating
import jsonschema
import outcomes
import pytest
from msgspec.structs import replace

from rule_runner.loading.loader import LoadedRule, load_builtin
from rule_runner.report.rule_pages import page
from rule_runner.report.sarif import sarif
from rule_runner.results.issues.acknowledged import FindingIds
from rule_runner.results.schema import RuleResult
from smdebug.rules import Rule

FILE = Path(__file__).parents[3] / "data" / "schemas" / "sarif-schema-2.1.0.json"
VALIDATOR = jsonschema.Draft7Validator(json.loads(FILE.read_text()))


class Mine(Rule):
    """Met when {nothing} is left.

    Ever.
    """

    def invoke_at_step(self, step: int) -> bool:
        raise NotImplementedError


class Undocumented(Rule):
    def invoke_at_step(self, step: int) -> bool:
        raise NotImplementedError


def run_of(
    *rules: RuleResult, loaded: list[LoadedRule] | None = None, code: int = 0, name: str = "t"
) -> dict[str, Any]:
    """Return the run of the log, which is valid."""
    known = loaded or [load_builtin("AllZero") for _ in rules]
    log = json.loads(sarif(outcomes.of(*rules, name=name), known, code))
    VALIDATOR.validate(log)
    assert (log["version"], log["$schema"].rpartition("/")[2]) == ("2.1.0", FILE.name)
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def descriptors(*loaded: LoadedRule) -> list[dict[str, Any]]:
    run = run_of(*(outcomes.result(one.name) for one in loaded), loaded=list(loaded))
    found: list[dict[str, Any]] = run["tool"]["driver"]["rules"]
    return found


def test_a_rule_is_described_from_its_page() -> None:
    (rule,) = descriptors(load_builtin("VanishingGradient"))
    assert rule["id"] == "VanishingGradient"
    assert (
        rule["shortDescription"]["text"]
        == "The mean magnitude of a gradient fell below a threshold."
    )
    assert rule["fullDescription"]["text"].startswith("Met when ``mean(|g|) < threshold`` for")
    assert rule["help"] == {"text": page(rule["id"]), "markdown": page(rule["id"])}
    assert rule["properties"] == {"page": "docs/rules/VanishingGradient.md"}
    assert "helpUri" not in rule


def test_a_rule_of_the_users_is_described_from_its_docstring() -> None:
    mine, other = descriptors(evaluating.custom(Mine), evaluating.custom(Undocumented))
    assert mine == {
        "id": "Mine",
        "shortDescription": {"text": "Met when {nothing} is left."},
        "fullDescription": {"text": "Met when {nothing} is left.\n\nEver."},
    }
    assert other["shortDescription"] == other["fullDescription"] == {"text": "Rule Undocumented."}


def test_two_rule_jobs_may_have_one_rule() -> None:
    zero, mine = load_builtin("AllZero"), evaluating.custom(Mine)
    rules = [outcomes.met("a"), outcomes.met("b", rule="Mine"), outcomes.met("c")]
    run = run_of(*rules, loaded=[zero, mine, zero])
    assert [one["id"] for one in run["tool"]["driver"]["rules"]] == ["AllZero", "Mine"]
    places = [(one["ruleId"], one["ruleIndex"]) for one in run["results"]]
    assert places == [("AllZero", 0)] * 2 + [("Mine", 1)] * 2 + [("AllZero", 0)] * 2


@pytest.mark.parametrize(("mode", "level"), [("enforce", "error"), ("observe", "warning")])
def test_a_finding_is_a_result_with_its_place_and_its_id(mode: str, level: str) -> None:
    rule = outcomes.met("zeros", mode=mode)
    ids = FindingIds(rule.fingerprint)
    first, second = run_of(rule)["results"]
    assert first == {
        "ruleId": "AllZero",
        "ruleIndex": 0,
        "level": level,
        "message": {"text": "zeros: step 3, fc/w of worker_0, measured 1.5, limit 2."},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": "file:///trials/t"}},
                "logicalLocations": [
                    {"kind": "step", "name": "3", "fullyQualifiedName": "t/step/3"},
                    {
                        "kind": "worker",
                        "name": "worker_0",
                        "fullyQualifiedName": "t/worker/worker_0",
                    },
                    {"kind": "tensor", "name": "fc/w", "fullyQualifiedName": "t/tensor/fc/w"},
                ],
            }
        ],
        "partialFingerprints": {"findingId/v1": ids.next(rule.evidence[0])},
        "properties": {"mode": mode, "severity": "error", "measured": 1.5, "limit": 2},
    }
    assert second["message"] == {"text": "zeros: step 3, measured 1, limit 2, n."}
    assert second["partialFingerprints"] == {"findingId/v1": ids.next(rule.evidence[1])}
    assert len(second["locations"][0]["logicalLocations"]) == 1


def test_a_finding_in_profiler_data_lies_there() -> None:
    rules = [outcomes.met("zeros"), outcomes.met("busy", unit="window")]
    both = outcomes.of(*rules)
    profile = replace(both.trial, name="p", path="s3://b/p")
    loaded = [load_builtin("AllZero"), load_builtin("BatchSize")]
    (run,) = json.loads(sarif(replace(both, profiler_trial=profile), loaded, 0))["runs"]
    places = {
        one["message"]["text"].partition(":")[0]: one["locations"][0] for one in run["results"]
    }
    assert {
        name: (
            one["physicalLocation"]["artifactLocation"]["uri"],
            one["logicalLocations"][0]["fullyQualifiedName"],
        )
        for name, one in places.items()
    } == {"zeros": ("file:///trials/t", "t/step/3"), "busy": ("s3://b/p", "p/step/3")}


@pytest.mark.parametrize(
    ("rule", "level", "text"),
    [
        pytest.param(
            outcomes.failed("x"),
            "error",
            "x: Rule 'Rule' raised KeyError at step 3: 'x'.",
            id="error",
        ),
        pytest.param(
            outcomes.silent("x"),
            "warning",
            "x: Rule 'Rule' judged none of 4 known steps.",
            id="silent",
        ),
        pytest.param(outcomes.stopped("x"), "warning", "x: Stopped by SIGTERM.", id="stopped"),
        pytest.param(outcomes.result("x", notes=["Odd."]), "note", "x: Odd.", id="note"),
        pytest.param(
            outcomes.met("x", findings_count=7),
            "note",
            "x: 5 more findings are in findings.jsonl.",
            id="findings-that-are-not-listed",
        ),
    ],
)
def test_what_hindered_a_rule_is_a_notification(rule: RuleResult, level: str, text: str) -> None:
    (invocation,) = run_of(rule)["invocations"]
    assert invocation["toolExecutionNotifications"] == [
        {
            "level": level,
            "message": {"text": text},
            "associatedRule": {"id": "AllZero", "index": 0},
            "properties": {"outcome": rule.outcome},
        }
    ]


@pytest.mark.parametrize(("code", "successful"), [(0, True), (10, True), (1, False), (143, False)])
def test_the_exit_code_says_whether_the_execution_was_successful(
    code: int, successful: bool
) -> None:
    (invocation,) = run_of(outcomes.result(), code=code)["invocations"]
    assert invocation == {
        "executionSuccessful": successful,
        "exitCode": code,
        "startTimeUtc": "2026-03-01T12:00:00.000Z",
        "endTimeUtc": "2026-03-01T12:00:01.500Z",
        "toolExecutionNotifications": [],
    }


def test_every_rule_tells_verdict_and_coverage() -> None:
    run = run_of(outcomes.result("a"), outcomes.silent("b"))
    assert run["results"] == []
    rules = run["properties"]["rules"]
    assert {name: one["outcome"] for name, one in rules.items()} == {
        "a": "NoIssuesFound",
        "b": "NotEvaluated",
    }
    assert rules["a"]["coverage"]["judged"] == 3
    assert run["properties"]["trial"]["path"] == "/trials/t"
    assert run["tool"]["driver"]["version"] == "1.2.3"


def test_hostile_names_are_text() -> None:
    run = run_of(outcomes.hostile(), name=outcomes.HOSTILE)
    (found,) = run["results"]
    harmless = "a\\x00\\x1b[31m\ufffe\uffff\\ud800]]>&<b>\\u202e{0}[x](http://y)\\n\\x85é"
    assert found["ruleId"] == harmless
    names = [one["name"] for one in found["locations"][0]["logicalLocations"]]
    assert names == ["1", harmless, harmless]
    # Neither a placeholder nor a link.
    assert "{{0}}\\[x](http://y)" in found["message"]["text"]
    assert "\x1b" not in json.dumps(run, ensure_ascii=False)


def test_brackets_that_are_no_link_stay() -> None:
    rule = outcomes.silent("x", status_details="Index [0] is missing.")
    (invocation,) = run_of(rule)["invocations"]
    (told,) = invocation["toolExecutionNotifications"]
    assert told["message"]["text"] == "x: Index [0] is missing."


def test_nothing_evaluated_is_a_log_too() -> None:
    run = run_of()
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_levels_are_severities_and_muted_findings_are_suppressed() -> None:
    for mode in ("enforce", "observe"):
        results = run_of(outcomes.mild(mode=mode))["results"]
        assert [one["level"] for one in results] == ["note", "warning", "warning"]
        assert [one.get("suppressions") for one in results] == [
            None,
            None,
            [{"kind": "external", "status": "accepted", "justification": "Known."}],
        ]
