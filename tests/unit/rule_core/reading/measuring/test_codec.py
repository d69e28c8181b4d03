"""The codec: what comes back is what was measured, of the same types; junk is an error."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.model.array_difference import ChangeNorms, Norms
from rule_core.model.element_statistics import Activity
from rule_core.model.reductions import Reduction
from rule_core.model.streaming_statistics import Want, measure
from rule_core.reading.measuring.codec import BlockEncoder, DecodedBlock

L2 = Reduction("l2")


def decoded(wants: list[Want], results: dict[Want, dict[str, Any]]) -> Any:
    encoder = BlockEncoder(wants)
    names = [name for values in results.values() for name in values]
    encoder.add(7, "worker_0", results, {1: 6}, dict.fromkeys(names, (2, 3)))
    measures = DecodedBlock(encoder.content(), wants).measures(7, "worker_0")
    return None if measures is None else measures.values


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1),
        np.float64(np.nan),
        np.float16(-0.0),
        np.uint64(2**64 - 1),
        np.int64(-1),
        1.5,
        7,
        True,
        (1, (2.5, "text")),
    ],
)
def test_values_keep_their_types(value: Any) -> None:
    answers = decoded([(L2, 0)], {(L2, 0): {"a": value, "b": value}})
    result = answers[L2, None]["b"]
    assert type(result) is type(value)
    assert repr(result) == repr(value)


def test_statistics_with_results_of_their_own() -> None:
    activity = Activity(0.0)
    array = np.array([-1, np.nan, 3], np.float32)
    flags = measure(array, [activity])[activity]
    wants: list[Want] = [(activity, 0), (ChangeNorms(), 1)]
    answers = decoded(wants, {wants[0]: {"a": flags}, wants[1]: {"a": Norms(1.0, 2.0)}})
    result = answers[activity, None]["a"]
    assert type(result) is type(flags)
    np.testing.assert_array_equal(result.active((3,)), flags.active((3,)))
    np.testing.assert_array_equal(result.nan((3,)), flags.nan((3,)))
    assert type(answers[ChangeNorms(), 6]["a"]) is Norms


@pytest.mark.parametrize("value", [object(), [1], {"d": 1}, 2**70, np.array(["text"])])
def test_what_cannot_be_represented_is_left_out(value: Any) -> None:
    assert decoded([(L2, 0)], {(L2, 0): {"a": value}}) is None


def test_statistics_of_others_are_skipped() -> None:
    encoder = BlockEncoder([(L2, 0)])
    encoder.add(7, "worker_0", {(L2, 0): {"a": 1.0}}, {}, {"a": ()})
    measures = DecodedBlock(encoder.content(), [None]).measures(7, "worker_0")
    assert measures is not None
    assert measures.values == {}
    assert DecodedBlock(encoder.content(), [None]).measures(8, "worker_0") is None


@pytest.mark.parametrize(
    "column",
    [
        [9, None, 0, "", [1.0]],
        [0, None, 9, "", [1.0]],
        [0, None, 0, "", [1.0, 2.0]],
        [0, None, 0, "O", b"12345678"],
        [0, None, 0, "<f4", b"123"],
        [0, None, 0, "<f4", 5],
        [0, None, 0, "", [{"n": "OrderedDict", "t": []}]],
        [0, None, 0, "", [{"n": "system", "t": ["true"]}]],
        [0, None, 0, "", [{"d": "O", "s": None, "b": b"12345678"}]],
        [0, None, 0, "", [[]]],
    ],
)
def test_junk_is_a_value_error(column: list[Any]) -> None:
    content = msgspec.msgpack.encode([[["a"]], [{"a": []}], [[7, "worker_0", 0, [column]]]])
    with pytest.raises(ValueError, match=r"."):
        DecodedBlock(content, [(L2, 0)]).measures(7, "worker_0")


@given(st.binary(max_size=60))
def test_bytes_of_anyone_are_a_value_error(content: bytes) -> None:
    try:
        DecodedBlock(content, [(L2, 0)]).measures(7, "worker_0")
    except ValueError:
        return
