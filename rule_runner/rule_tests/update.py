"""updated_text: the text of a test file, with other expectations in their places."""

from collections.abc import Mapping

from rule_runner.rule_tests.expectation import Expectation
from rule_runner.rule_tests.rule_table import RuleTable, TableError


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
    spans = table.document.values
    case_path, path = ("cases", number), ("cases", number, "expect")
    case, key = spans[case_path], table.document.keys.get(path)
    new = f"expect: {expected.to_yaml()}"
    if case.is_alias or (key is not None and spans[path].is_alias):
        msg = f"{table.where(*path)}: An alias cannot be updated: write the expectation out."
        raise TableError(msg)
    if key is not None:
        return key.start, spans[path].end, new
    if case.is_flow:
        inner = case.end - 1
        while table.text[inner - 1] in " \t\n,":
            inner -= 1
        return inner, inner, f", {new}"
    line_end = table.text.find("\n", case.end)
    line_end = len(table.text) if line_end < 0 else line_end
    return line_end, line_end, "\n" + " " * case.column + new
