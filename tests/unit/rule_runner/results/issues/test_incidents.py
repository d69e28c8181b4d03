"""Incidents: which issue is the root cause, and what follows from it."""

from typing import Any

import outcomes
import pytest

from builtin_rules import RULES
from builtin_rules.causes import CAUSES, cause_rank
from rule_core.severity import Severity
from rule_runner.results.issues.incidents import RunState, incidents, run_state
from rule_runner.results.schema import IncidentRecord, RuleResult, RuleSource
from rule_runner.results.status import FindingState


def issue(rule: str, step: int, severity: str = "error", **more: Any) -> RuleResult:
    return outcomes.met(rule, rule=rule, step=step, severity=Severity(severity), **more)


def names_of(*rules: RuleResult) -> list[list[str]]:
    return [
        [rule.configuration_name for rule in (incident.root, *incident.consequences)]
        for incident in incidents(rules)
    ]


def test_a_rule_has_at_most_one_place_in_the_order_of_causes() -> None:
    names = [name for group in CAUSES for name in group]
    assert len({*names} & {*RULES}) == len(names)


def test_causes_come_before_consequences_whenever_they_were_found() -> None:
    found = [
        issue("LossNotDecreasing", 38),
        issue("VanishingGradient", 20),
        issue("WeightUpdateRatio", 40, "warning"),
        issue("DeadRelu", 30, "warning"),
    ]
    assert names_of(*found) == [
        ["WeightUpdateRatio", "DeadRelu", "VanishingGradient", "LossNotDecreasing"]
    ]
    assert incidents(found)[0].severity is Severity.ERROR


def test_the_earlier_of_two_equal_causes_is_the_root() -> None:
    assert names_of(issue("NormGrowth", 9), issue("LossSpike", 4)) == [["LossSpike", "NormGrowth"]]


def test_facts_about_the_wiring_are_incidents_of_their_own() -> None:
    found = [
        issue("Overfit", 2, "warning"),
        issue("RepeatedBatches", 7, "warning"),
        issue("GradientAccumulates", 5),
    ]
    assert names_of(*found) == [["GradientAccumulates", "Overfit"], ["RepeatedBatches"]]


@pytest.mark.parametrize(
    "apart",
    [
        issue("TreeDepth", 1, "warning"),
        issue("GPUIdleWaitsForHost", 1, "warning"),
        issue("DeadRelu", 1, "warning", source=RuleSource(location="/mine.py", sha256="0")),
    ],
)
def test_what_stands_apart_neither_causes_nor_follows(apart: RuleResult) -> None:
    assert names_of(apart, issue("LossNotDecreasing", 5)) == [["LossNotDecreasing"], [apart.rule]]


def test_only_what_still_holds_is_an_incident() -> None:
    back = issue("LossSpike", 4, state=FindingState.RECOVERED)
    assert names_of(back, outcomes.result("AllZero")) == []
    assert names_of(back, issue("LossNotDecreasing", 9)) == [["LossNotDecreasing"]]


def test_an_incident_keeps_its_id_while_its_consequences_grow() -> None:
    cause, loss = issue("LossSpike", 4, "warning"), issue("LossNotDecreasing", 9)
    (one,), (other,) = incidents([cause]), incidents([cause, loss])
    assert other.record() == IncidentRecord(
        one.record().id, Severity.ERROR, "LossSpike", ["LossNotDecreasing"]
    )
    assert incidents([loss])[0].record().id != one.record().id


def test_rules_that_nobody_knows_have_no_rank() -> None:
    assert cause_rank("Mine") is None


FINE, SILENT = outcomes.result("Fine"), outcomes.silent("Silent")
ODD, BAD = issue("Odd", 1, "warning"), issue("Bad", 1)
BACK = issue("Back", 1, state=FindingState.RECOVERED, recovered_at=30)


@pytest.mark.parametrize(
    ("rules", "state"),
    [
        ([], RunState.UNKNOWN),
        ([SILENT], RunState.UNKNOWN),
        ([FINE, SILENT], RunState.HEALTHY),
        ([FINE, outcomes.failed("Failed")], RunState.UNKNOWN),
        ([FINE, outcomes.stopped("Stopped")], RunState.UNKNOWN),
        ([outcomes.failed("Failed"), ODD], RunState.SUSPICIOUS),
        ([ODD, BAD], RunState.BROKEN),
        ([FINE, BACK], RunState.HEALTHY),
    ],
)
def test_the_state_of_a_run_is_that_of_its_worst_issue(
    rules: list[RuleResult], state: RunState
) -> None:
    assert run_state(rules) is state


def test_incomplete_results_tell_nothing_but_issues() -> None:
    assert run_state([FINE], "The disk is full.") is RunState.UNKNOWN
    assert run_state([BAD], "The disk is full.") is RunState.BROKEN
