"""Tables of cProfile: what is read of them, and what is refused."""

import json
import marshal
from pathlib import Path

import marshalled as m
import pytest
from python_profile_writer import span, write_cprofile

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.profiler.python_profiles import cprofile_file
from rule_core.profiler.python_profiles.cprofile_file import parse_cprofile

F = ("a.py", 7, "f")
ROW = (1, 2, 0.5, 0.75, {})


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def work() -> None:
    fibonacci(5)
    json.loads(json.dumps({"a": [1, 2.5, None]}))
    sorted([3, 1, 2], key=lambda one: -one)


def test_what_cprofile_wrote_is_read(tmp_path: Path) -> None:
    path, expected = write_cprofile(tmp_path, span(9), work)
    found = parse_cprofile("p", path.read_bytes())
    assert expected == found
    assert any(primitive < calls for primitive, calls, *_ in found.values())
    assert any(callers for *_, callers in found.values())


@pytest.mark.parametrize("version", range(2, 6))
def test_each_version_of_marshal_is_read(version: int, tmp_path: Path) -> None:
    _, expected = write_cprofile(tmp_path, span(9), work)
    assert expected == parse_cprofile("p", marshal.dumps(expected, version))


GOOD = [
    pytest.param(m.pairs(), {}, id="empty"),
    pytest.param(m.pairs(m.KEY, m.entry()), {F: ROW}, id="short"),
    pytest.param(
        m.pairs(m.KEY, m.entry(callers=m.pairs(m.KEY, m.CALLS))),
        {F: (*ROW[:4], {F: (1, 2, 0.5, 0.75)})},
        id="callers",
    ),
    pytest.param(
        m.pairs(m.KEY, m.entry(b"I" + (2**40).to_bytes(8, "little"))),
        {F: (2**40, *ROW[1:])},
        id="int64-of-python-3.0",
    ),
    pytest.param(
        m.pairs(m.KEY, m.entry(m.digits(0, 0, 1))), {F: (2**30, *ROW[1:])}, id="long-number"
    ),
    pytest.param(
        m.pairs(m.KEY, m.entry(m.digits(*[0x7FFF] * 4, 7))),
        {F: (2**63 - 1, *ROW[1:])},
        id="largest-number",
    ),
    pytest.param(m.pairs(m.KEY, m.entry(own=m.real(-1.5))), {F: (1, 2, -1.5, 0.75, {})}, id="past"),
    pytest.param(
        m.pairs(
            b"(\3\0\0\0" + m.long_text("ä.py".encode()) + m.whole(0) + m.long_text(b"g", b"a"),
            m.entry(),
        ),
        {("ä.py", 0, "g"): ROW},
        id="long-forms",
    ),
    pytest.param(
        m.pairs(
            m.several(m.long_text("ö".encode(), b"t"), m.whole(1), m.long_text(b"g", b"A")),
            m.entry(),
            m.several(m.text("h", b"Z"), m.whole(1), m.text("h")),
            m.entry(),
        ),
        {("ö", 1, "g"): ROW, ("h", 1, "h"): ROW},
        id="interned",
    ),
    pytest.param(
        m.pairs(m.several(m.long_text(b"\xed\xb2\x80"), m.whole(1), m.text("g")), m.entry()),
        {("\udc80", 1, "g"): ROW},
        id="name-of-a-file-that-is-no-utf-8",
    ),
    pytest.param(
        m.pairs(
            # number 0 is the function, 1 its file, 2 its line
            m.kept(m.several(m.kept(m.text("a.py")), m.kept(m.whole(7)), m.text("f"))),
            # 3 is a time, 4 a caller's numbers
            m.entry(m.ref(2), own=m.kept(m.real(0.5)), cumulative=m.ref(3)),
            m.several(m.ref(1), m.ref(2), m.ref(1)),
            m.entry(callers=m.pairs(m.ref(0), m.kept(m.CALLS))),
            m.several(m.text("x"), m.whole(1), m.text("y")),
            m.entry(callers=m.pairs(m.ref(0), m.ref(4))),
        ),
        {
            F: (7, 2, 0.5, 0.5, {}),
            ("a.py", 7, "a.py"): (*ROW[:4], {F: (1, 2, 0.5, 0.75)}),
            ("x", 1, "y"): (*ROW[:4], {F: (1, 2, 0.5, 0.75)}),
        },
        id="references",
    ),
]


@pytest.mark.parametrize(("data", "expected"), GOOD)
def test_forms_that_profilers_write_are_read(data: bytes, expected: object) -> None:
    assert expected == parse_cprofile("p", data) == marshal.loads(data)


def one(key: bytes = m.KEY, value: bytes | None = None) -> bytes:
    return m.pairs(key, m.entry() if value is None else value)


CORRUPT = [
    pytest.param(b"N", "a table of functions before byte 1, got the code b'N'", id="none"),
    pytest.param(b"c" * 500, "a table of functions before byte 1, got the code b'c'", id="code"),
    pytest.param(b"[" * 9999, "a table of functions", id="deep-lists"),
    pytest.param(b"{" * 9999, "a function's file, line and name", id="deep-tables"),
    pytest.param(b"(\1\0\0\0" * 9999, "a table of functions", id="deep-tuples"),
    pytest.param(b"{" + b"(\3\0\0\0" * 9999, "a text before", id="deep-keys"),
    pytest.param(m.pairs(m.KEY, b"N"), "a function's four numbers and its callers", id="no-row"),
    pytest.param(one(value=m.CALLS), "four numbers and its callers .*got 4 things", id="short-row"),
    pytest.param(one(value=m.ref(0)), "its callers .*got the code b'r'", id="row-by-reference"),
    pytest.param(one(m.several(m.text("f"))), "line and name .*got 1 things", id="short-key"),
    pytest.param(one(m.text("f")), "line and name .*the code b'z'", id="text-as-key"),
    pytest.param(one(b"(\xff\xff\xff\xff"), "got -1 things", id="negative-length"),
    pytest.param(one(b"(\xff\xff\xff\x7f"), "got 2147483647 things", id="huge-tuple"),
    pytest.param(one(value=m.entry(callers=b"N")), "a table of functions", id="no-callers"),
    pytest.param(
        one(value=m.entry(callers=m.pairs(m.KEY, m.whole(3)))),
        "a caller's four numbers .*got the code b'i'",
        id="calls-only-as-of-profile",
    ),
    pytest.param(one(value=m.entry(m.real(1.0))), "a number of calls .*code b'g'", id="real-count"),
    pytest.param(one(value=m.entry(b"T")), "a number of calls .*code b'T'", id="true-as-count"),
    pytest.param(one(value=m.entry(m.whole(-1))), "calls of 0 to .*got -1", id="negative-count"),
    pytest.param(
        one(value=m.entry(m.digits(0, 0, 0, 0, 8))), f"got {2**63}", id="count-of-64-bits"
    ),
    pytest.param(one(value=m.entry(m.digits(1, count=-1))), "of -1 digits", id="negative-long"),
    pytest.param(
        one(value=m.entry(m.digits(1, count=2**31 - 1))), "of 2147483647 digits", id="huge-number"
    ),
    pytest.param(one(value=m.entry(m.digits(0x8000))), "got a digit of 32768", id="digit"),
    pytest.param(one(value=m.entry(own=m.whole(1))), "a time .*the code b'i'", id="whole-time"),
    pytest.param(
        one(value=m.entry(own=m.real(float("nan")))), "a time in seconds .*got nan", id="nan"
    ),
    pytest.param(
        one(value=m.entry(own=m.real(float("-inf")))), "a time in seconds .*got -inf", id="infinite"
    ),
    pytest.param(
        one(m.several(m.text("f"), m.whole(-1), m.text("g"))), "a line of 0 to", id="negative-line"
    ),
    pytest.param(
        one(m.several(m.text("f"), m.digits(0, 0, 2), m.text("g"))), "a line of", id="large-line"
    ),
    pytest.param(
        one(m.several(b"s\1\0\0\0f", m.whole(1), m.text("g"))), "a text .*b's'", id="bytes"
    ),
    pytest.param(
        one(m.several(m.long_text(b"\xff"), m.whole(1), m.text("g"))), "a text in utf-8", id="utf-8"
    ),
    pytest.param(
        one(m.several(m.long_text(b"\xff", b"a"), m.whole(1), m.text("g"))),
        "a text in ascii",
        id="ascii",
    ),
    pytest.param(
        one(b")\3" + m.long_text(b"", length=-5)),
        "got one of -5",
        id="negative-text",
    ),
    pytest.param(
        one(b")\3" + m.long_text(b"", length=2**31 - 1)), "got one of 2147483647", id="huge-text"
    ),
    pytest.param(m.pairs(m.KEY, m.entry(), m.KEY, m.entry()), r"'f'\) twice", id="same-function"),
    pytest.param(one() + b"0", "the end of the file .*got 1 more bytes", id="more-bytes"),
    pytest.param(bytes([ord("{") | 0x80]) + b"\xb0", "line and name .*b'0'", id="flag-on-the-end"),
    # -- references
    pytest.param(one(m.ref(0)), "a reference to number 0, which is none", id="to-nothing"),
    pytest.param(one(m.ref(-1)), "a reference to number -1, which is none", id="to-minus-one"),
    pytest.param(
        m.kept(one(m.ref(0))), "line and name .*reference to number 0, which", id="table-in-itself"
    ),
    pytest.param(
        one(m.kept(m.several(m.ref(0), m.whole(1), m.text("g")))),
        "a text .*reference to number 0, which is none",
        id="key-in-itself",
    ),
    pytest.param(
        one(value=m.kept(m.several(*[m.ref(0)] * 5))),
        "a number of calls .*reference to number 0, which is none",
        id="row-in-itself",
    ),
    pytest.param(
        one(value=m.entry(callers=m.kept(m.pairs(m.KEY, m.ref(0))))),
        "caller's four numbers .*number 0, which is none",
        id="callers-in-themselves",
    ),
    pytest.param(
        m.pairs(m.kept(m.KEY), m.entry(callers=m.pairs(m.KEY, m.ref(0)))),
        r"caller's four numbers .*reference to \('a.py', 7, 'f'\)",
        id="key-as-calls",
    ),
    pytest.param(
        one(value=m.entry(callers=m.pairs(m.KEY, m.kept(m.CALLS), m.ref(0), m.CALLS))),
        r"line and name .*reference to \(1, 2, 0.5, 0.75\)",
        id="calls-as-key",
    ),
    pytest.param(
        one(m.several(m.kept(m.text("a.py")), m.ref(0), m.text("g"))),
        "a line .*reference to 'a.py'",
        id="text-as-line",
    ),
    pytest.param(
        m.pairs(m.several(m.text("f"), m.kept(m.whole(7)), m.ref(0)), m.entry()),
        "a text .*reference to 7",
        id="line-as-text",
    ),
    pytest.param(
        m.pairs(m.several(m.text("f"), m.kept(m.whole(7)), m.text("g")), m.entry(own=m.ref(0))),
        "a time .*reference to 7",
        id="line-as-time",
    ),
    pytest.param(
        m.pairs(
            m.several(m.text("f"), m.kept(m.digits(0, 0, 1)), m.text("g")),
            m.entry(),
        )
        + b"x",
        "the end of the file",
        id="more-after-a-long-line",
    ),
]


@pytest.mark.parametrize(("data", "message"), CORRUPT)
def test_anything_else_is_refused_in_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message) as caught:
        parse_cprofile("p", data)
    text = str(caught.value)
    assert text.startswith("File 'p' is corrupt: expected ")
    assert (text[-1], "\n" in text) == (".", False)


def test_a_table_that_is_cut_off_anywhere_is_reported() -> None:
    whole = one(
        m.several(m.long_text(b"a.py"), m.digits(1), m.text("g")),
        m.entry(b"I" + bytes(8), callers=m.pairs(m.KEY, m.CALLS)),
    )
    assert len(parse_cprofile("p", whole)) == 1
    for end in range(len(whole)):
        with pytest.raises(TruncatedFileError, match=r"^File 'p' is cut off: expected \d+ bytes"):
            parse_cprofile("p", whole[:end])


def test_numbers_of_bytes_and_functions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = m.pairs(m.KEY, m.entry(callers=m.pairs(m.KEY, m.CALLS)))
    monkeypatch.setattr(cprofile_file, "MAX_ENTRIES", 2)
    assert len(parse_cprofile("p", data)) == 1
    monkeypatch.setattr(cprofile_file, "MAX_ENTRIES", 1)
    with pytest.raises(CorruptFileError, match=r"at most 1 functions and callers .*got more"):
        parse_cprofile("p", data)
    monkeypatch.setattr(cprofile_file, "MAX_BYTES", len(data) - 1)
    with pytest.raises(CorruptFileError, match=f"at most {len(data) - 1} bytes, got {len(data)}"):
        parse_cprofile("p", memoryview(data))
