"""What a command line asks for: which rules, from which files, with which parameters."""

import pytest

from rule_runner.config.request import RuleRequest
from rule_runner.config.rule_options import (
    parse_modes,
    parse_parameters,
    parse_requests,
)
from rule_runner.errors import UsageError


@pytest.mark.parametrize(
    ("rules", "sources", "expected"),
    [
        pytest.param(["AllZero"], [], [RuleRequest(None, "AllZero")], id="name"),
        pytest.param([], ["r.py"], [RuleRequest(None, None, "r.py")], id="file"),
        pytest.param(["R"], ["r.py"], [RuleRequest(None, "R", "r.py")], id="name-and-file"),
        pytest.param(["a=R"], [], [RuleRequest("a", "R")], id="id"),
        pytest.param(["a=R"], ["a=r.py"], [RuleRequest("a", "R", "r.py")], id="same-id"),
        pytest.param(
            ["a=R", "b=S", "T"],
            ["c=t.py", "a=r.py"],
            [
                RuleRequest("a", "R", "r.py"),
                RuleRequest("b", "S"),
                RuleRequest(None, "T"),
                RuleRequest("c", None, "t.py"),
            ],
            id="several",
        ),
        pytest.param(["A", "B"], [], [RuleRequest(None, "A"), RuleRequest(None, "B")], id="names"),
        pytest.param(
            [],
            ["a.py", "b.py"],
            [RuleRequest(None, None, "a.py"), RuleRequest(None, None, "b.py")],
            id="files",
        ),
        pytest.param([], ["d=x/a.py"], [RuleRequest("d", None, "x/a.py")], id="file-with-id"),
        pytest.param([], ["d/e=f.py"], [RuleRequest(None, None, "d/e=f.py")], id="sign-in-path"),
        pytest.param(
            ["a=R"],
            ["s.py"],
            [RuleRequest("a", "R"), RuleRequest(None, None, "s.py")],
            id="one-with-id-one-without",
        ),
    ],
)
def test_requests(rules: list[str], sources: list[str], expected: list[RuleRequest]) -> None:
    assert parse_requests(rules, sources) == expected


@pytest.mark.parametrize(
    ("rules", "sources", "match"),
    [
        (["A", "B"], ["a.py"], r"^2 rules and 1 source files have no ID, so which belong"),
        (["A"], ["a.py", "b.py"], r"^1 rules and 2 source files have no ID"),
        (["a=A", "a=B"], [], r"^ID 'a' is given to two --rule options\. IDs must differ\.$"),
        ([], ["a=a.py", "a=b.py"], r"^ID 'a' is given to two --source options\."),
        (["a="], [], r"^Option --rule needs a value after 'a='\.$"),
        ([], [""], r"^Option --source needs a value after ''\.$"),
    ],
)
def test_requests_that_cannot_be(rules: list[str], sources: list[str], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        parse_requests(rules, sources)


@pytest.mark.parametrize(
    ("texts", "ids", "expected"),
    [
        pytest.param([], ["a"], {"a": {}}, id="none"),
        pytest.param(["x=1", "y="], ["a"], {"a": {"x": "1", "y": ""}}, id="only-rule"),
        pytest.param(["a.x=1"], ["a"], {"a": {"x": "1"}}, id="only-rule-named"),
        pytest.param(
            ["a.x=1", "b.x=2=3"], ["a", "b"], {"a": {"x": "1"}, "b": {"x": "2=3"}}, id="two"
        ),
        pytest.param(["a.b.x=1"], ["a", "a.b"], {"a": {}, "a.b": {"x": "1"}}, id="longest-id"),
        pytest.param(["c.x=1"], ["a"], {"a": {"c.x": "1"}}, id="dot-in-name"),
        pytest.param(["a.=1"], ["a"], {"a": {"a.": "1"}}, id="dot-at-end"),
    ],
)
def test_parameters(texts: list[str], ids: list[str], expected: dict[str, dict[str, str]]) -> None:
    assert parse_parameters(texts, ids) == expected


@pytest.mark.parametrize(
    ("texts", "ids", "match"),
    [
        (["x"], ["a"], r"^A parameter must be key=value, got 'x'\.$"),
        (["=1"], ["a"], r"^A parameter must be key=value, got '=1'\.$"),
        (["x=1", "a.x=2"], ["a"], r"^Parameter 'x' of rule 'a' is given twice\.$"),
        (
            ["x=1"],
            ["a", "b"],
            r"^Parameter 'x' does not name its rule\. Write ID\.x=value with an ID",
        ),
        (["c.x=1"], ["a", "b"], r"Write ID\.x=value with an ID of 'a', 'b'\.$"),
    ],
)
def test_parameters_that_cannot_be(texts: list[str], ids: list[str], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        parse_parameters(texts, ids)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param([], ["enforce", "enforce"], id="enforce-by-default"),
        pytest.param(["observe"], ["observe", "observe"], id="all"),
        pytest.param(["b=observe"], ["enforce", "observe"], id="one"),
        pytest.param(["a=enforce", "observe"], ["enforce", "observe"], id="all-but-one"),
    ],
)
def test_modes_by_rule(texts: list[str], expected: list[str]) -> None:
    assert expected == [*parse_modes(texts, ["a", "b"]).values()]


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        (["watch"], r"^A mode must be 'enforce' or 'observe', got 'watch'\.$"),
        (["Loss="], r"^A mode must be 'enforce' or 'observe', got ''\.$"),
        (
            ["Los=observe"],
            r"^Mode 'Los=observe' names no .*\. Did you mean 'Loss'\? Its IDs: 'Loss', 'x'\.$",
        ),
        (["=observe"], r"names no rule of this evaluation\. Its IDs"),
        (["observe", "enforce"], r"^The mode of all rules is given twice\.$"),
        (["x=observe", "x=observe"], r"^The mode of rule 'x' is given twice\.$"),
    ],
)
def test_modes_that_cannot_be(texts: list[str], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        parse_modes(texts, ["Loss", "x"])
