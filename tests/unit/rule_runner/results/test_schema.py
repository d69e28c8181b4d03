"""Results: every output is valid JSON of its schema, whatever a rule handed over."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it comes without types
import ml_dtypes
import numpy as np
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from rule_core.rules.evidence import Finding
from rule_core.severity import Severity
from rule_runner.report import text
from rule_runner.results.json_text import (
    JsonScalar,
    dump_json,
    dump_numbers,
    json_scalar,
    rfc3339,
)
from rule_runner.results.schema import (
    EVALUATION_SCHEMA,
    RULE_SCHEMA,
    EvaluationResult,
    Evidence,
    RuleJobFacts,
    RuleResult,
    TrialSummary,
    evidence,
    rule_result,
)
from rule_runner.results.state import RuleJobState
from rule_runner.results.versions import versions

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMAS = [json.loads(path.read_text()) for path in (RULE_SCHEMA, EVALUATION_SCHEMA)]
REGISTRY = referencing.Registry().with_resources(
    (schema["$id"], referencing.Resource.from_contents(schema)) for schema in SCHEMAS
)


def validate(text: str, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(schema, registry=REGISTRY).validate(json.loads(text))


def result_of(evaluation: RuleJobState, **parameters: object) -> RuleResult:
    facts = RuleJobFacts(parameters, "/trials/a", "observe", "f" * 64, versions())
    return rule_result(evaluation, facts, trial_ended=True, duration_s=1.5, rule_time_s=0.25)


def begun(*, keep_going: bool = True) -> RuleJobState:
    evaluation = RuleJobState("AllZero", "zeros", keep_going, START)
    evaluation.coverage.known = 7
    return evaluation


def ended_clear() -> RuleJobState:
    evaluation = begun()
    evaluation.step_judged(0)
    evaluation.step_skipped(1, "nothing_read")
    evaluation.missing_workers(1, ["worker_1"])
    evaluation.ended(START + timedelta(seconds=1.5), trial_ended=True)
    return evaluation


def ended_met(*, keep_going: bool = True) -> RuleJobState:
    evaluation = begun(keep_going=keep_going)
    evaluation.condition_met(3, [Finding(3, "w", "worker_0", np.float32("nan"), 0.5, "n")], START)
    evaluation.note("A \x1b[31mnote.")
    evaluation.ended(START, trial_ended=True)
    return evaluation


def recovered() -> RuleJobState:
    evaluation = begun()
    evaluation.condition_met(3, [Finding(3, "w")], START)
    note = Finding(5, "w", severity=Severity.NOTE, recovered_at=5)
    evaluation.finding_only(5, [note])
    evaluation.ended(START, trial_ended=True)
    return evaluation


def not_evaluated() -> RuleJobState:
    evaluation = begun()
    evaluation.ended(START, trial_ended=False)
    return evaluation


def stopped() -> RuleJobState:
    evaluation = begun()
    evaluation.stop_requested("Stopped by SIGTERM.", START)
    evaluation.ended(START, trial_ended=False)
    return evaluation


@pytest.mark.parametrize("make", [begun, ended_clear, ended_met, recovered, not_evaluated, stopped])
def test_every_result_is_valid_against_its_schema(make: Any) -> None:
    result = result_of(make(), threshold=0.5, patience="3")
    validate(dump_json(result), SCHEMAS[0])
    trial = TrialSummary(
        name="a", path="/trials/a", ended=True, steps=7, first_step=0, last_step=6, workers=["w"]
    )
    validate(dump_json(EvaluationResult(trial=trial, rules=[result])), SCHEMAS[1])


@pytest.mark.parametrize("schema", SCHEMAS, ids=["rule", "evaluation"])
def test_the_schemas_are_schemas(schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_schema_refuses_what_is_not_described() -> None:
    wrong = json.loads(dump_json(result_of(ended_clear()))) | {"verdict": "fine"}
    with pytest.raises(jsonschema.ValidationError, match="verdict"):
        validate(json.dumps(wrong), SCHEMAS[0])


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_result_has_what_the_evaluation_counted(keep_going: bool) -> None:
    state = {"state": "open"} if keep_going else {}
    expected = {
        "schema_version": 1,
        "configuration_name": "zeros",
        "rule": "AllZero",
        "source": None,
        "unit": "step",
        "outcome": "IssuesFound",
        "status": "IssuesFound",
        "status_details": "RuleEvaluationConditionMet: Evaluation of the rule AllZero at step 3 "
        "resulted in the condition being met\n",
        "step": 3,
        "severity": "error",
        **state,
        "evidence": [
            {
                "step": 3,
                "tensor": "w",
                "worker": "worker_0",
                "measured": "NaN",
                "limit": 0.5,
                "note": "n",
                "severity": "error",
                **state,
            }
        ],
        "findings_count": 1,
        "notes_count": 0,
        "muted_count": 0,
        "coverage": {
            "judged": 1,
            "skipped": {},
            "known": 7,
            "first": 3,
            "last": 3,
            "missing_workers": {},
        },
        "parameters": {"threshold": 0.5, "patience": "3"},
        "trial": "/trials/a",
        "trial_ended": True,
        "mode": "observe",
        "started_at": "2026-03-01T12:00:00.000Z",
        "ended_at": "2026-03-01T12:00:00.000Z",
        "duration_s": 1.5,
        "rule_time_s": 0.25,
        "versions": versions(),
        "fingerprint": "f" * 64,
        "run_id": "",
        "actions": [],
        "notes": ["A \x1b[31mnote."],
    }
    evaluation = ended_met(keep_going=keep_going)
    actual = json.loads(dump_json(result_of(evaluation, threshold=0.5, patience="3")))
    assert expected == actual
    assert list(expected) == list(actual)


def test_an_issue_that_has_recovered_keeps_its_outcome_and_does_not_count() -> None:
    result = result_of(recovered())
    assert (result.outcome, result.severity) == ("IssuesFound", "error")
    assert (result.state, result.recovered_at) == ("recovered", 5)
    assert not result.has_issues()
    found, note = result.evidence
    assert (found.state, found.recovered_at) == ("recovered", 5)
    assert (note.severity, note.state, note.recovered_at) == ("note", UNSET, 5)
    assert text.verdict(result) == "IssuesFound at step 3 (observed, recovered at step 5)"
    assert text.evidence(found) == "step 3, w, recovered at step 5"
    assert text.evidence(note) == "noted: step 5, w, recovered"


def test_a_result_does_not_change_with_its_evaluation() -> None:
    evaluation = begun()
    evaluation.step_skipped(0, "nothing_read")
    result = result_of(evaluation)
    evaluation.step_skipped(1, "nothing_read")
    evaluation.missing_workers(1, ["w"])
    assert result.coverage.skipped == {"nothing_read": 1}
    assert result.coverage.missing_workers == {}


def test_no_fewer_steps_are_known_than_were_seen() -> None:
    evaluation = RuleJobState("AllZero", "zeros", True, START)
    evaluation.step_judged(4)
    assert result_of(evaluation).coverage.known == 1


def test_a_result_has_the_mode_of_its_rule_job() -> None:
    facts = RuleJobFacts({}, "/t", "enforce", "f", {})
    result = rule_result(begun(), facts, trial_ended=False, duration_s=0, rule_time_s=0)
    assert result.mode == "enforce"


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError


class Wordy:
    def __str__(self) -> str:
        return "w" * 999


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(True, True, id="bool"),
        pytest.param(3, 3, id="int"),
        pytest.param(0.5, 0.5, id="float"),
        pytest.param("t" * 999, "t" * 999, id="text-stays"),
        pytest.param(float("nan"), "NaN", id="nan"),
        pytest.param(float("inf"), "Infinity", id="inf"),
        pytest.param(float("-inf"), "-Infinity", id="minus-inf"),
        pytest.param(np.float32(0.5), 0.5, id="float32"),
        pytest.param(np.float64("-inf"), "-Infinity", id="float64-inf"),
        pytest.param(np.longdouble(0.5), 0.5, id="longdouble"),
        pytest.param(ml_dtypes.bfloat16(0.5), 0.5, id="bfloat16"),
        pytest.param(np.bool_(True), True, id="numpy-bool"),
        pytest.param(np.int64(7), 7, id="int64"),
        pytest.param(np.str_("a"), "a", id="numpy-text"),
        pytest.param(np.array(2.5), 2.5, id="0-d"),
        pytest.param(np.array([[np.nan]]), "NaN", id="one-element"),
        pytest.param(np.array([1, 2]), "[1 2]", id="two-elements"),
        pytest.param(np.array([]), "[]", id="empty"),
        pytest.param(2 + 1j, "(2+1j)", id="complex"),
        pytest.param(np.clongdouble(2 + 1j), "(2+1j)", id="complex-longdouble"),
        pytest.param(np.datetime64("2026-03-01"), "2026-03-01", id="date"),
        pytest.param(np.float16(0.5), 0.5, id="float16"),
        pytest.param(ml_dtypes.float8_e5m2("inf"), "Infinity", id="float8"),
        pytest.param(2**63, 2**63, id="uint64"),
        pytest.param(2**64, "18446744073709551616", id="big-int"),
        pytest.param(10**9999, "<int>", id="huge-int"),
        pytest.param([1, 2], "[1, 2]", id="list"),
        pytest.param(("a.*", "b"), "a.*,b", id="names"),
        pytest.param((), "", id="no-names"),
        pytest.param(("a", 1), "('a', 1)", id="tuple"),
        pytest.param(Wordy(), "w" * 200, id="text-is-cut"),
        pytest.param(Hostile(), "<Hostile>", id="text-raises"),
    ],
)
def test_values_become_what_json_can_hold(value: object, expected: JsonScalar) -> None:
    actual = json_scalar(value)
    assert expected == actual
    assert type(expected) is type(actual)


def test_a_finding_of_odd_types_is_evidence() -> None:
    finding = Finding(np.int64(4), np.str_("w"), 3, np.array([1.0]), np.inf, Hostile())  # type: ignore[arg-type] # what rules hand over
    expected = Evidence(4, "w", "3", 1.0, "Infinity", "<Hostile>")
    assert expected == evidence(finding)


@pytest.mark.parametrize("dump", [dump_json, dump_numbers])
@given(text=st.text(st.characters(exclude_categories=[]), max_size=20))
def test_any_text_is_valid_and_harmless_json(dump: Callable[[object], str], text: str) -> None:
    line = dump({"text": text, text: 1})
    line.encode()
    assert not set(line) & {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2028"}
    mended = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    assert {"text": mended, mended: 1} == {"text": mended} | json.loads(line)


def test_nan_never_slips_through() -> None:
    with pytest.raises(ValueError, match="Out of range float values"):
        dump_json({"x": float("nan")})


def test_times_are_utc() -> None:
    moment = datetime(2026, 3, 1, 1, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(moment) == "2026-02-28T23:00:00.123Z"


def test_the_schema_of_an_evaluation_holds_that_of_a_rule() -> None:
    rule, evaluation = SCHEMAS
    assert evaluation["$defs"]["rule_result"] == rule


def test_values_of_secret_parameters_are_masked() -> None:
    result = result_of(begun(), api_key="planted", patience="3")
    assert result.parameters == {"api_key": "***", "patience": "3"}
