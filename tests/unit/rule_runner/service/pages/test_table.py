from typing import Any

import msgspec

from rule_core.severity import Severity
from rule_runner.index.states import WatchState
from rule_runner.service.api.queries import TrialQuery
from rule_runner.service.api.trials import RuleItem, TrialItem
from rule_runner.service.pages.table import address, chips, columns, rows, sort_link


def rule(name: str, outcome: str = "NoIssuesFound", **more: Any) -> RuleItem:
    fields = {"severity": None, "step": None, "findings": 0, "judged": 9, "verdict": outcome}
    return RuleItem(name=name, rule=name, outcome=outcome, **(fields | more))


def item(*rules: RuleItem, **more: Any) -> TrialItem:
    fields = {"id": 1, "path": "/runs/a", "root": "/runs", "state": "judged", "outcome": ""}
    fields |= {"severity": None, "started_at": None, "ended_at": None, "changed_at": 0.0}
    fields |= {"last_step": None, "attempt": 1, "reason": ""}
    return TrialItem(**(fields | more), rules=[*rules])


def test_columns_are_the_rules_with_a_verdict() -> None:
    waiting = rule("Waiting", "InProgress", judged=0)
    items = [item(rule("B"), rule("Silent", "NotEvaluated"), waiting), item(rule("A"))]
    assert columns(items) == ["A", "B"]


def test_a_cell_says_everything_in_words() -> None:
    found = rule("A", "IssuesFound", severity=Severity.ERROR, step=1200, findings=7)
    warned = rule("B", "IssuesFound", severity=Severity.WARNING, step=3, acknowledged=True)
    ((row),) = rows([item(found, warned, rule("D"))], ["A", "B", "C", "D"])
    assert [cell and cell.label for cell in row.cells] == [
        "A: Issues found at step 1,200, 7 findings",
        "B: Warning at step 3, acknowledged",
        None,
        "D: No issues found",
    ]
    assert [cell and cell.is_loud for cell in row.cells] == [True, True, None, False]
    back = rule("A", "IssuesFound", verdict="Recovered", severity=Severity.ERROR, step=3)
    ((cell,),) = [row.cells for row in rows([item(back)], ["A"])]
    assert cell is not None
    assert (cell.label, cell.verdict.sign, cell.is_loud, cell.is_seen) == (
        "A: Recovered at step 3",
        "○",
        False,
        False,
    )
    assert [cell.verdict.sign for cell in row.cells if cell] == ["✕", "▲", "✓"]


def test_the_version_of_a_row_is_that_of_what_it_shows() -> None:
    base = item(rule("A"))
    versions = {
        rows([changed], ["A"])[0].version
        for changed in (
            base,
            base,
            msgspec.structs.replace(base, state="running"),
            msgspec.structs.replace(base, last_step=7),
            item(rule("A", "IssuesFound")),
        )
    }
    assert len(versions) == 4


def test_the_address_holds_the_whole_query() -> None:
    query = TrialQuery(text="a&b", state=WatchState.RUNNING, rule="A", sort="-changed", page=2)
    assert address(query, page=2) == (
        "/trials?text=a%26b&state=running&rule=A&sort=-changed&page=2"
    )
    assert address(query, state=None, rule=None) == "/trials?text=a%26b&sort=-changed"
    assert address(TrialQuery(limit=7)) == "/trials"


def test_chips_count_trials_and_turn_filters_on_and_off() -> None:
    counts = {("judged", "IssuesFound"): 2, ("running", ""): 1, ("running", "IssuesFound"): 4}
    chosen = chips(TrialQuery(outcome="IssuesFound"), counts)
    assert [(chip.word, chip.trials, chip.link, chip.is_current) for chip in chosen] == [
        ("All", 7, "/trials", False),
        ("Issues found", 6, "/trials", True),
        ("Running", 5, "/trials?state=running&outcome=IssuesFound", False),
    ]


def test_a_heading_sorts_and_turns_the_order() -> None:
    assert sort_link(TrialQuery(), "path") == ("/trials?sort=-path", "ascending")
    assert sort_link(TrialQuery(), "changed", descending=True) == ("/trials?sort=-changed", "")
    turned = sort_link(TrialQuery(sort="-changed"), "changed", descending=True)
    assert turned == ("/trials?sort=changed", "descending")
