import pytest

from rule_runner.loading.loader import every_builtin
from rule_runner.service.pages.rule_page import rule_text


@pytest.mark.parametrize("name", sorted(every_builtin()))
def test_every_built_in_rule_has_a_page(name: str) -> None:
    text = rule_text(name)
    assert text is not None
    assert text.summary
    assert text.text.startswith("<h2>")
    assert "<script" not in text.text


def test_the_code_of_others_is_not_imported() -> None:
    assert rule_text("MyRule") is None


def test_parameters_are_a_table_and_remedies_a_list() -> None:
    text = rule_text("VanishingGradient")
    assert text is not None
    assert "<table>" in text.text
    assert "<code>threshold</code>" in text.text
    assert text.remedy.startswith("<ul>")
