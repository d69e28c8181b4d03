"""Pages of rules: where they come from, and whether each built-in rule has a whole one."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest

from builtin_rules import RULES as TENSOR_RULES
from builtin_rules.profiler_table import PROFILER_RULES
from builtin_rules.rule_page import (
    FINDING,
    FOLDER,
    HEADINGS,
    finding_texts,
    parsed,
    rule_page,
    rule_summary,
)
from rule_runner.loading.loader import every_builtin
from smdebug.rules import Rule
from smdebug.rules.extensions import Page

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
RULES = every_builtin()
OPTIONAL = {"limits"}


class Custom(Rule):
    PAGE = Page(why="Why.", save="Save it.", missing="Missing.", remedy="- Do it.")

    def invoke_at_step(self, step: int) -> bool:
        return bool(step)


class Derived(Custom):
    pass


class Overfit(Rule):
    """A rule of a user with the name of a built-in one."""

    def invoke_at_step(self, step: int) -> bool:
        return bool(step)


def test_a_page_has_the_texts_below_its_headings() -> None:
    page = parsed("## Why it matters\n\nOne.\n\n    ## code\n\n## How to save that\n\nTwo.\n")
    assert (page.why, page.save, page.remedy) == ("One.\n\n    ## code", "Two.", "")


@pytest.mark.parametrize("rule", [Custom, Derived])
def test_a_custom_rule_declares_its_page_or_inherits_it(rule: type[Rule]) -> None:
    assert rule_page(rule) is Custom.PAGE


def test_a_custom_rule_does_not_take_the_page_of_a_built_in_rule_of_its_name() -> None:
    assert rule_page(Overfit) == Page(why="", save="", missing="", remedy="")


def test_a_rule_derived_from_a_built_in_one_inherits_its_page() -> None:
    derived = type("Derived", (RULES["Overfit"],), {"__module__": "mine"})
    assert rule_page(derived) == rule_page(RULES["Overfit"])


def test_each_file_is_the_page_of_a_rule_and_has_known_headings_in_order() -> None:
    files = {path.stem: path.read_text("utf-8") for path in FOLDER.iterdir()}
    assert sorted(files) == sorted(RULES)
    order = list(HEADINGS.values())
    order.insert(order.index(HEADINGS["severity"]), FINDING)
    for text in files.values():
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert headings == [heading for heading in order if heading in headings]


@pytest.mark.parametrize("name", RULES)
def test_the_page_of_a_built_in_rule_is_whole_and_no_longer_in_its_class(name: str) -> None:
    page = rule_page(RULES[name])
    assert [field for field in HEADINGS if not getattr(page, field) and field not in OPTIONAL] == []
    assert "PAGE" not in vars(RULES[name])
    assert "Page(" not in inspect.getsource(RULES[name])


@pytest.mark.parametrize("name", sorted({*PROFILER_RULES} - {n for n in RULES if "Overall" in n}))
def test_a_finding_of_a_profiler_rule_has_a_sentence_and_a_remedy(name: str) -> None:
    texts, rule = finding_texts(name), PROFILER_RULES[name]
    assert re.fullmatch(r"[A-Z].*\.", texts.remedy)
    assert texts.sentences.keys() <= {quantity.name for quantity in rule.QUANTITIES}
    assert {*texts.limited_by.values()} - {""} <= {param.name for param in rule.PARAMS}
    for sentence in texts.sentences.values():
        said = sentence.format(where="GPU 0", worker="worker 0", measured=1, limit=2)
        assert re.fullmatch(r"(GPU 0|worker 0|1|[A-Z]).*\.", said)
        assert "  " not in said


@pytest.mark.parametrize("name", sorted({*TENSOR_RULES} - {"CreateXgboostReport"}))
def test_the_sentences_of_a_tensor_rule_name_the_step_and_belong_to_a_quantity_or_a_note(
    name: str,
) -> None:
    texts = finding_texts(name)
    assert texts.sentences
    assert texts.sentences.keys() <= {quantity.name for quantity in TENSOR_RULES[name].QUANTITIES}
    for said in texts.examples():
        assert re.fullmatch(r"(TENSOR|X|[A-Z]).*\.", said.summary)
        assert "step N" in said.summary
        assert re.fullmatch(r"[A-Z].*[.?]", said.advice)


def test_a_summary_is_that_of_the_rules_file() -> None:
    assert rule_summary(RULES["ExplodingTensor"]) == "A tensor holds NaN or infinity."


def test_wheels_contain_every_page() -> None:
    tools = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]
    patterns = tools["setuptools"]["package-data"]["builtin_rules"]
    packaged = {path for pattern in patterns for path in FOLDER.parent.glob(pattern)}
    assert set(FOLDER.iterdir()) <= packaged
