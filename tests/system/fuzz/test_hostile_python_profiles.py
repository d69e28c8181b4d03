"""Files of cProfile that nobody wrote: one error of ours, never a crash, never other numbers."""

import marshal
import tracemalloc
from typing import Any

import marshalled as m
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.profiler.python_profiles.cprofile_file import MAX_TEXT, parse_cprofile
from smdebug.exceptions import TrialFileError

# Surrogates stand for bytes of names of files that are no UTF-8.
texts = st.text(st.characters(codec=None), max_size=300) | st.sampled_from(
    ["~", "a" * 256, "ä" * 200, "\udcff", "<built-in>", "\0"]
)
functions = st.tuples(texts, st.integers(0, 2**31 - 1), texts)
counts = st.integers(0, 9) | st.integers(0, 2**63 - 1)
times = st.floats(allow_nan=False, allow_infinity=False)
calls = st.tuples(counts, counts, times, times)
tables = st.lists(functions, min_size=1, max_size=6, unique=True).flatmap(
    lambda known: st.dictionaries(
        st.sampled_from(known),
        st.tuples(
            *(counts, counts, times, times),
            st.dictionaries(st.sampled_from(known), calls, max_size=4),
        ),
        max_size=6,
    )
)
versions = st.integers(2, 5)


def own(table: dict[Any, Any]) -> dict[Any, Any]:
    """Return a table whose dictionaries and rows are in one place each, as a profiler's are."""
    return {key: (*row[:4], dict(row[4])) for key, row in table.items()}


@given(tables, versions)
def test_each_table_is_read_as_marshal_reads_it(table: dict[Any, Any], version: int) -> None:
    data = marshal.dumps(own(table), version)
    assert marshal.loads(data) == parse_cprofile("p", data)


@given(tables, versions, st.data())
def test_mutated_tables_raise_our_error_or_are_tables(
    table: dict[Any, Any], version: int, data: st.DataObject
) -> None:
    content = bytearray(marshal.dumps(own(table), version))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        match data.draw(st.sampled_from(["set", "insert", "cut", "double"])):
            case "set" if at < len(content):
                content[at] = data.draw(st.integers(0, 255))
            case "insert":
                content[at:at] = data.draw(st.binary(max_size=6))
            case "cut":
                del content[at : at + data.draw(st.integers(1, 9))]
            case _:
                content[at:at] = content[: data.draw(st.integers(0, len(content)))]
    check(bytes(content))


@given(st.binary(max_size=200))
def test_bytes_of_no_table_raise_our_error_or_are_tables(data: bytes) -> None:
    check(data)
    check(b"{" + data)


def check(data: bytes) -> None:
    """Check that bytes are refused in one sentence, or hold what a table can hold."""
    try:
        found = parse_cprofile("p", data)
    except TrialFileError as err:
        text = str(err)
        assert text.startswith(("File 'p' is corrupt: expected ", "File 'p' is cut off: expected "))
        assert (text[-1], len(text) < 1000) == (".", True)
        return
    assert found == marshal.loads(data)
    for key, (*numbers, callers) in found.items():
        kinds = [type(one) for one in (*key, *numbers)]
        assert kinds == [str, int, str, int, int, float, float]
        for caller, row in callers.items():
            kinds = [type(one) for one in (*caller, *row)]
            assert kinds == [str, int, str, int, int, float, float]


def function(number: int) -> bytes:
    return m.several(m.text(""), m.whole(number), m.text(""))


def all_to_all(entries: int) -> bytes:
    """Return a table whose last function is called by all others, by references."""
    functions = b"".join(m.kept(function(one)) + m.entry() for one in range(entries))
    numbers = m.kept(m.CALLS)
    callers = m.pairs(
        *(m.ref(one) + (m.ref(entries) if one else numbers) for one in range(entries))
    )
    return m.pairs(functions, m.KEY, m.entry(callers=callers))


GREEDY = [
    pytest.param(b"{" + b"(\xff\xff\xff\x7f" * 1000, id="huge-tuples"),
    pytest.param(b"{" * 1_000_000, id="deep"),
    pytest.param(b"{)\3" + m.long_text(b"", length=MAX_TEXT) * 9, id="texts-that-are-not-there"),
    pytest.param(m.pairs(*[m.KEY + m.entry()] * 2), id="twice"),
    pytest.param(b"\xfb" + m.kept(function(1)) + m.entry(callers=m.ref(0)), id="in-itself"),
    pytest.param(
        m.pairs(m.KEY, m.entry(callers=m.kept(m.pairs())), function(1), m.entry(callers=m.ref(0))),
        id="shared-callers",
    ),
]


@pytest.mark.parametrize("data", GREEDY)
def test_greedy_files_take_no_memory(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(TrialFileError):
            parse_cprofile("p", data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(data) + (1 << 16)


def test_many_references_are_followed() -> None:
    data = all_to_all(500)
    assert parse_cprofile("p", data) == marshal.loads(data)
    assert len(parse_cprofile("p", data)["a.py", 7, "f"][4]) == 500
