"""The series of answers, and answers that have none."""

import json
from typing import Any

import pytest
from prometheus_writer import BEGAN_S, series

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.prometheus.answer import LabelledSeries, series_in


def parsed(document: Any) -> list[LabelledSeries]:
    return list(series_in("a.json", json.dumps(document).encode()))


def answer(*found: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": [*found], **data}}


def test_values_are_numbers_and_times_ascend() -> None:
    values = series("up", [1, "NaN", "+Inf", "1e3", "0x1", "", "-2.5"])
    values["values"] = [*values["values"][::-1], values["values"][0]]
    [parsed_series] = parsed(answer(values))
    assert parsed_series.labels == {"__name__": "up"}
    assert parsed_series.value.tolist() == [1.0, 1000.0, -2.5]
    assert (parsed_series.time_s - BEGAN_S).tolist() == [0, 45, 90]


def test_texts_with_several_numbers_are_none() -> None:
    [parsed_series] = parsed(answer(series("up", ["1,2", "3"])))
    assert parsed_series.value.tolist() == [3.0]


def test_answers_of_other_servers_have_more_fields() -> None:
    document = {
        "status": "success",
        "isPartial": False,
        **answer(series("up", [1])),
        "warnings": [],
    }
    assert len(parsed(document)) == 1
    assert parsed(answer({"metric": {}, "histograms": []}))[0].value.tolist() == []


@pytest.mark.parametrize(
    ("document", "got"),
    [
        ({"status": "error", "errorType": "bad_data", "error": "step?"}, "'bad_data: step"),
        (answer(resultType="vector"), "an answer of the type 'vector'"),
        (answer(result={}), "Expected `array`, got `object`"),
        (answer({"metric": {}, "values": [[1, 2]]}), "Expected `str`, got `int`"),
        (answer({"metric": {"gpu": 1}, "values": []}), "Expected `str`, got `int`"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_what_is_no_range_is_one_error(document: object, got: str) -> None:
    with pytest.raises(CorruptFileError, match="expected an answer of Prometheus to query_range"):
        parsed(document)
    with pytest.raises(CorruptFileError) as err:
        parsed(document)
    assert got in str(err.value)
