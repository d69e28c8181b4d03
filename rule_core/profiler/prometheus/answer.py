"""LabelledSeries: the time series of one answer of Prometheus, with the labels that identify them.

Read are answers of ``/api/v1/query_range``, and of ``/api/v1/query`` for a range such as
``DCGM_FI_DEV_GPU_UTIL[1h]``. Thanos, Mimir and VictoriaMetrics give the same form.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.files.whole_text import decoded

WHAT: Final = "an answer of Prometheus to query_range"
_MATRIX: Final = "matrix"
_SUCCESS: Final = "success"
_NUMBER: Final = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?")


class LabelledSeries(NamedTuple):
    """One time series.

    Attributes
    ----------
    labels
        Its labels, with the name of the metric as ``__name__``.
    time_s, value
        Ascending seconds since the epoch, and finite values; each of shape ``(n,)``.
    """

    labels: dict[str, str]
    time_s: NDArray[np.float64]
    value: NDArray[np.float64]


class _Matrix(msgspec.Struct, gc=False, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct, gc=False, rename="camel"):
    status: str
    data: _Matrix = msgspec.field(default_factory=_Matrix)
    error_type: str = ""
    error: str = ""


class _MatrixSeries(msgspec.Struct, gc=False):
    metric: dict[str, str]
    values: list[tuple[float, str]] = msgspec.field(default_factory=list)


def series_in(name: str, text: bytes) -> Iterator[LabelledSeries]:
    """Yield the series of an answer; values that are not finite are left out.

    Parameters
    ----------
    name
        The file's name in messages.
    text
        The answer.

    Raises
    ------
    CorruptFileError
        If it is no answer with ranges of time.
    """
    answer = decoded(name, text, _Answer, WHAT)
    if answer.status != _SUCCESS:
        reason = f"{answer.error_type}: {answer.error}" if answer.error else answer.status
        raise CorruptFileError(name, WHAT, f"an error of Prometheus, {reason.rstrip('.')!r}")
    if answer.data.result_type != _MATRIX:
        raise CorruptFileError(name, WHAT, f"an answer of the type {answer.data.result_type!r}")
    for raw in decoded(name, answer.data.result, list[msgspec.Raw], WHAT):
        series = decoded(name, raw, _MatrixSeries, WHAT)
        times = np.array([time_s for time_s, _ in series.values], np.float64)
        values = _numbers([text for _, text in series.values])
        finite = np.isfinite(values)
        times, first = np.unique(times[finite], return_index=True)
        yield LabelledSeries(series.metric, times, values[finite][first])


def _numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers in texts; NaN for other texts."""
    try:
        numbers = msgspec.json.decode(f"[{','.join(texts)}]", type=list[float])
    except msgspec.MsgspecError:  # such as for NaN, which JSON does not have
        numbers = []
    if len(numbers) != len(texts):
        numbers = [float(text) if _NUMBER.fullmatch(text) else math.nan for text in texts]
    return np.array(numbers, np.float64)
