"""JSON and YAML of job files: taken as written, refused in one sentence, in bounded time."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_runner.config import documents
from rule_runner.config.documents import (
    TextError,
    parse,
    parse_json,
    parse_yaml,
    read_text,
    yaml_document,
)
from rule_runner.errors import JobError

DEEP = 100_000


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("a: 1e-7", {"a": "1e-7"}),
        ("a: 10", {"a": "10"}),
        ("a: yes", {"a": "yes"}),
        ("a: 'None'", {"a": "None"}),
        ("a:", {"a": ""}),
        ("1: 2", {"1": "2"}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: !!str 5", {"a": "5"}),
        ("a: {b: [c, {d: e}]}", {"a": {"b": ["c", {"d": "e"}]}}),
        ("a: |\n  x\n  y", {"a": "x\ny"}),
        ("- &x {a: b}\n- *x\n- *x", [{"a": "b"}] * 3),
        ("&k key: *k", {"key": "key"}),
        ("\ufeff---\na: b\n...", {"a": "b"}),
        ("", None),
    ],
)
def test_yaml_is_taken_as_it_is_written(written: str, value: object) -> None:
    assert parse_yaml(written) == value


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: key 'a' occurs twice"),
        ("x:\n  - {b: 1, 'b': 2}", "line 2: key 'b' occurs twice"),
        ("a: !!python/object/apply:os.system [x]", "line 1: tag 'tag:yaml.org,2002:python"),
        ("a:\n  !own b", "line 2: tag '!own' cannot be used"),
        ("a: !!int 5", "line 1: tag 'tag:yaml.org,2002:int' cannot be used"),
        ("&a [*a]", "line 1: alias '*a' is not defined before it"),
        ("a: 1\n--- \nb: 2", "line 2: a second document begins"),
        ("b: &b {c: d}\na:\n  <<: *b", "line 3: merging mappings with '<<' is not supported"),
        ("? [a]\n: b", "line 1: a key must be text"),
        ("a: b: c", "line 1: mapping values are not allowed in this context"),
        ("a: 'b", "line 1: found unexpected end of stream"),
        ("a: \x01", "control characters are not allowed"),
        ("[" * DEEP, "line 1: it is nested too deeply"),
        ("a:\n" + "- x\n" * DEEP, "line 99999: it expands to more than 100,000 values"),
    ],
)
def test_yaml_that_is_refused(written: str, problem: str) -> None:
    with pytest.raises(TextError) as refused:
        parse_yaml(written)
    assert str(refused.value).startswith(problem)


POSITIONS = """\
name: x  # a comment
cases:
  - &first {a: [1, 2]}
  - *first
  - b: |
      text
    c:
      - d  # another
# the end
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("cases",), "- &first {a: [1, 2]}\n  - *first\n  - b: |\n      text\n    c:\n      - d"),
        (("cases", 0), "&first {a: [1, 2]}"),
        (("cases", 0, "a"), "[1, 2]"),
        (("cases", 0, "a", 1), "2"),
        (("cases", 1), "*first"),
        (("cases", 2), "b: |\n      text\n    c:\n      - d"),
        (("cases", 2, "c", 0), "d"),
    ],
)
def test_a_value_has_a_position(path: tuple[str | int, ...], text: str) -> None:
    span = yaml_document(POSITIONS).values[path]
    assert POSITIONS[span.start : span.end] == text
    assert span.line == POSITIONS.count("\n", 0, span.start) + 1
    assert span.column == span.start - POSITIONS.rfind("\n", 0, span.start) - 1
    assert span.is_flow == text.endswith(("}", "]"))
    assert span.is_alias == text.startswith("*")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("cases",), 2),
        (("cases", 1, "a", 0), 4),
        (("cases", 2, "c"), 7),
        (("cases", 2, "c", 0), 8),
        (("none", 0), 0),
    ],
)
def test_the_line_is_that_of_the_key_or_item_or_of_what_is_around_it(
    path: tuple[str | int, ...], line: int
) -> None:
    document = yaml_document(POSITIONS)
    assert document.line(path) == line
    assert set(document.keys) < set(document.values)


def test_aliases_count_as_what_they_stand_for() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(TextError, match=r"^line 6: it expands to more than 100,000 values$"):
        parse_yaml("\n".join(lines))
    with pytest.raises(TextError, match=r"^line 2: it expands to more than 100,000 values$"):
        parse_yaml("a: &a x\nb: [" + "*a," * 300_000 + "]")


def test_json_is_taken_as_it_is() -> None:
    value = {"a": [1, 1.5, None, True, {"b": "\u20ac\n"}], "b": {"a": {}, "c": "}{\\"}}
    written = '{"a":[1,1.5,null,true,{"b":"\\u20ac\\n"}],"b":{"a":{},"c":"}{\\\\"}}'
    assert parse_json(written) == value


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ('{"a": 1,\n"b": {"c": 1,\n"c": 2}}', "line 3: key 'c' occurs twice"),
        ('{"a": "{", "\\u0061": 1}', "line 1: key 'a' occurs twice"),
        ("{\n,}", "line 2: Expecting property name enclosed in double quotes"),
        ("[" * DEEP, "it is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "Exceeds the limit (4300 digits)"),
        ('{"a": 1} x', "line 1: Extra data"),
    ],
)
def test_json_that_is_refused(written: str, problem: str) -> None:
    with pytest.raises(TextError) as refused:
        parse_json(written)
    assert str(refused.value).startswith(problem)


@given(st.text(alphabet='{}[]"\\:,&*!|>-?ab \n#<~', max_size=40))
def test_any_text_is_a_value_or_refused(written: str) -> None:
    for parsed in (parse_json, parse_yaml):
        try:
            parsed(written)
        except TextError as err:
            assert str(err)  # noqa: PT017 - most texts are refused, some are not


@pytest.mark.parametrize(
    ("suffix", "written", "value"),
    [
        (".json", '{"a": 1}', {"a": 1}),
        (".YAML", '{"a": 1}', {"a": "1"}),
        (".yml", "a: 1", {"a": "1"}),
        ("", ' \n{"a": 1}', {"a": 1}),
        (".txt", "a: 1", {"a": "1"}),
    ],
)
def test_the_suffix_says_what_it_is_or_else_the_beginning(
    suffix: str, written: str, value: object
) -> None:
    assert parse(written, suffix) == value


def test_a_file_is_read_without_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes("\ufeffa: \u00e9".encode())
    assert read_text(path) == "a: \u00e9"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: 1\nb: \xe9")
    (tmp_path / "large").write_bytes(b"#" * (documents.LIMIT + 1))
    os.mkfifo(tmp_path / "pipe")
    for name, problem in {
        "none": "does not exist.",
        "latin/none": "does not exist.",
        "latin": "is not UTF-8 text: byte 0xe9 in line 2.",
        "large": "is too large: the limit is 1,048,576 bytes.",
        "pipe": "is not a regular file.",
        ".": "is not a regular file.",
        "n" * 300: "cannot be read: File name too long.",
    }.items():
        with pytest.raises(JobError) as refused:
            read_text(tmp_path / name)
        assert str(refused.value) == f"Job file {tmp_path / name} {problem}"
    with pytest.raises(JobError, match=r"cannot be read: .*null"):
        read_text(Path("a\0b"))
