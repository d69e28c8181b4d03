"""Rules of packages: which can be named, and what is refused."""

from importlib.metadata import EntryPoint

import pytest

from rule_runner.errors import RuleSourceError
from rule_runner.loading.rule_packages import GROUP, PackagedRule, rule_packages


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_names_of_built_in_rules_and_of_several_packages_are_refused() -> None:
    packages = rule_packages(
        ["Overfit"],
        [
            *(entry("overfit", "a:overfit"), entry("all", "a:all"), entry("Mine", "a:Mine")),
            *(entry("Twice", "a:Twice"), entry("Twice", "b:Twice"), entry("Mine", "a:Mine")),
        ],
    )
    assert [*packages.by_name] == ["Mine"]
    assert packages.find("mine") is packages.by_name["Mine"]
    assert packages.find("Other") is None
    for name, sentence in (
        ("overfit", "is ignored: a built-in rule has this name"),
        ("all", "is ignored: a built-in rule has this name"),
        ("Twice", r"is in several packages: unknown \(a:Twice\), unknown \(b:Twice\)"),
    ):
        with pytest.raises(RuleSourceError, match=sentence):
            packages.find(name)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("no_such_module:Mine", "raised ModuleNotFoundError while it was loaded: No module named"),
        ("math:Mine", "raised AttributeError while it was loaded"),
        ("math:pi", r"is not a rule\. Derive it from smdebug\.rules\.Rule"),
        ("smdebug.rules:Rule", "is not a rule"),
        ("builtin_rules:Overfit", r"is called 'Overfit'\. Give the entry point that name"),
    ],
)
def test_what_is_no_rule_is_refused(value: str, sentence: str) -> None:
    with pytest.raises(RuleSourceError, match=sentence):
        PackagedRule(entry("Mine", value)).load()
