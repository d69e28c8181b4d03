"""The content of dumps: what ranks joined, process groups, and bad entries."""

import json
from typing import Any

import pytest
from flight_recorder_writer import Dump

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.flight_recorder.dump import FlightDump, as_ranges, elements


def parsed(document: Any) -> FlightDump:
    return FlightDump("rank_0.json", json.dumps(document).encode())


def joined(*groups: str, **fields: Any) -> dict[str, Any]:
    dump = Dump(0, 4, {"1": [0, 2]})
    for group in groups:
        dump.join(group=group)
    return {**dump.document(), **fields}


def test_the_last_collective_of_each_group_is_known() -> None:
    dump = parsed(joined("0", "0", "1", "0"))
    assert dump.ranks == {"0": "0-3", "1": "0,2"}
    assert dump.last_joined() == {"0": 3, "1": 1}


def test_a_group_without_collectives_has_joined_none_if_nothing_was_overwritten() -> None:
    document = joined("0", "0")
    assert parsed(document).last_joined() == {"0": 2, "1": 0}
    del document["entries"][0]
    assert parsed(document).last_joined() == {"0": 2}


def test_the_status_counts_if_the_recorder_has_overwritten_the_last_entries() -> None:
    document = joined("0", "0")
    document["pg_status"]["0"]["last_enqueued_collective"] = "7"
    assert parsed(document).last_joined()["0"] == 7
    for status in ({"0": 5}, {"0": {"last_enqueued_collective": "-1"}}, {"0": {}}):
        assert parsed({**document, "pg_status": status}).last_joined()["0"] == 2


def test_the_nameless_group_of_gloo_is_the_only_one() -> None:
    nameless = {"": {"desc": "", "name": "", "ranks": "[0, 1]"}}
    assert parsed(joined("0", pg_config=nameless)).ranks == {"0": "0,1"}
    assert parsed(joined("0", "1", pg_config=nameless)).ranks == {}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("collective_seq_id", None, "it has no collective_seq_id"),
        ("collective_seq_id", "two", "Expected `int | null`, got `str`"),
        ("process_group", "0", "Expected `array`, got `str`"),
        ("time_created_ns", None, "Expected `int | float`, got `null`"),
        ("input_sizes", [[1.5]], "Expected `int`, got `float`"),
    ],
)
def test_bad_entries_are_skipped(field: str, value: object, reason: str) -> None:
    document = joined("0", "0")
    document["entries"][0][field] = value
    dump = parsed(document)
    assert len(dump.collectives) == 1
    assert len(dump.skipped) == 1
    assert dump.skipped[0].startswith(reason)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {"version": 2},
        {"version": "2.1", "entries": {}},
        {"version": "2.1", "pg_config": []},
    ],
)
def test_what_is_no_dump_is_one_error(document: object) -> None:
    with pytest.raises(CorruptFileError, match=r"expected a dump of torch\.distributed's flight"):
        parsed(document)


def test_a_collective_that_has_not_ended_is_pending() -> None:
    dump = Dump(0, 2)
    dump.join()
    dump.join(completes=False)
    dump.join(completes=False, retired=True)
    pending = [entry.is_pending for entry in parsed(dump.document()).collectives]
    assert pending == [False, True, False]


def test_numbers_of_elements_are_bounded() -> None:
    assert elements([[2, 3], []]) == 7
    assert elements([[1 << 60] * 99]) == 1 << 62


def test_ranks_are_written_as_ranges() -> None:
    assert as_ranges([]) == ""
    assert as_ranges([3]) == "3"
    assert as_ranges(range(0, 512, 8)) == "0-504:8"
