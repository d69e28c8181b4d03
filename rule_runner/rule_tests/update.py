"""updated_text: the text of a test file, with other expectations in their places."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from rule_runner.rule_tests.expectation import Expectation
from rule_runner.rule_tests.positioned_yaml import end_of
from rule_runner.rule_tests.rule_table import RuleTable, TableError

if TYPE_CHECKING:
    import yaml


def updated_text(table: RuleTable, expectations: Mapping[int, Expectation]) -> str:
    """Return the text of a YAML test file with new expectations; all else stays as it is.

    Parameters
    ----------
    expectations
        By the number of the case.

    Raises
    ------
    TableError
        If an expectation is an alias, or a case that shares its values with another one.
    """
    edits = [_edit(table, number, expected) for number, expected in expectations.items()]
    text = table.text
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _edit(table: RuleTable, number: int, expected: Expectation) -> tuple[int, int, str]:
    """Return the part of the text to replace, and the new text."""
    case = cast("yaml.MappingNode", table.document.nodes["cases", number])
    place = ("cases", number, "expect")
    new = f"expect: {expected.to_yaml()}"
    before = table.document.nodes.get(("cases", number - 1), None)
    key = table.document.keys.get(place)
    shared = before is not None and case.start_mark.index < before.start_mark.index
    if key is not None:
        value = table.document.nodes[place]
        shared = shared or value.start_mark.index < key.end_mark.index
    if shared:
        msg = f"{table.where(*place)}: An alias cannot be updated: write the expectation out."
        raise TableError(msg)
    if key is not None:
        return key.start_mark.index, end_of(table.document.nodes[place]), new
    end = end_of(case)
    if case.flow_style:
        inner = end - 1
        while table.text[inner - 1] in " \t\n,":
            inner -= 1
        return inner, inner, f", {new}"
    line_end = table.text.find("\n", end)
    line_end = len(table.text) if line_end < 0 else line_end
    column = case.value[0][0].start_mark.column
    return line_end, line_end, "\n" + " " * column + new
