"""Ranges of dcgm-exporter and node_exporter from Prometheus, converted to system metrics.

All answers in a folder are one trial: often each holds one metric.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from rule_core.profiler.files.conversion import Converted, NumberedKey, read_each
from rule_core.profiler.files.file_names import node_name
from rule_core.profiler.files.whole_text import whole_text
from rule_core.profiler.prometheus.answer import LabelledSeries, series_in
from rule_core.profiler.prometheus.metrics import Samples, is_read, samples_of
from rule_core.storage.base import TrialStore

_MARKS: Final = re.compile(rb'\{\s*"status"\s*:\s*"(success|error)"')
_HOST, _INSTANCE = "Hostname", "instance"
_PORT: Final = re.compile(r":\d{1,5}$")
_FILE_S: Final = 3600  # of one file
_EARLIEST_S: Final = 10**9  # 2001; the names of files have ten digits
_LATEST_S: Final = 10**10 - 1
_NO_METRIC: Final = (
    "It has no metric that is read: those of dcgm-exporter, as DCGM_FI_DEV_GPU_UTIL, or of "
    "node_exporter. Ask for the metric itself, as functions remove its name."
)


def begins_as_answer(text: bytes) -> bool:
    """Return whether a text begins as an answer does."""
    return _MARKS.match(text) is not None


def convert_answers(
    store: TrialStore, keys: Sequence[NumberedKey], folder: Path
) -> Iterator[Converted]:
    """Convert all answers together; a file that cannot be read is a separate problem."""

    def read(numbered: NumberedKey) -> tuple[str, list[LabelledSeries]] | Converted:
        key = numbered.key
        series = [each for each in series_in(key, whole_text(store, key)) if is_read(each)]
        return (key, series) if series else Converted(key, {}, [_NO_METRIC], 1)

    series: list[LabelledSeries] = []
    sources: list[str] = []
    for answer in read_each(keys, read):
        if isinstance(answer, Converted):
            yield answer
        else:
            sources.append(answer[0])
            series += answer[1]
    if sources:
        first, *others = sources
        files = _write(series, keys[0].number, folder)
        yield Converted(first, files, [] if files else ["It has no value that is read."], 0)
        yield from (Converted(key, {}, [], 0) for key in others)


def _write(series: Sequence[LabelledSeries], number: int, folder: Path) -> dict[str, Path]:
    """Write the samples of each node, a file for each hour; return the paths by key."""
    files: dict[str, Path] = {}
    for index, (node, of_node) in enumerate(sorted(_by_node(series).items())):
        hours: defaultdict[int, list[Samples]] = defaultdict(list)
        for samples in samples_of(of_node):
            for hour, part in _by_hour(samples):
                hours[hour].append(part)
        for hour, parts in sorted(hours.items()):
            path = folder / f"{number}.{index}.{hour}.samples"
            start = int(min(part.time_s[0] for part in parts))
            _write_file(path, node, parts)
            files[f"system/incremental/{number:06}/{start:010}.{node}.json"] = path
    return files


def _write_file(path: Path, node: str, parts: Sequence[Samples]) -> None:
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for kind, name, dimension, times, values in parts:
            sample = {"Type": kind, "Name": name, "Dimension": dimension, "NodeId": node}
            start = encode(sample)[:-1] + b',"Value":'
            texts = (encode(each.tolist())[1:-1].split(b",") for each in (values, times))
            file.writelines(
                start + value + b',"Timestamp":' + time_s + b"}\n"
                for value, time_s in zip(*texts, strict=True)
            )


def _by_hour(samples: Samples) -> Iterator[tuple[int, Samples]]:
    """Yield the samples of each hour with plausible times."""
    times = samples.time_s
    edges = np.searchsorted(times, [_EARLIEST_S, _LATEST_S])
    hours = times[edges[0] : edges[1]] // _FILE_S
    for hour in np.unique(hours):
        first, last = np.searchsorted(hours, [hour, hour + 1]) + edges[0]
        part = samples._replace(time_s=times[first:last], value=samples.value[first:last])
        yield int(hour), part


def _by_node(series: Sequence[LabelledSeries]) -> dict[str, list[LabelledSeries]]:
    """Return the series by node: the host that dcgm-exporter names, or else the instance.

    Other metrics of the same address, whatever its port, belong to its host if there is one only.
    """
    hosts: defaultdict[str, set[str]] = defaultdict(set)
    for each in series:
        if each.labels.get(_HOST):
            hosts[_instance(each)].add(each.labels[_HOST])
    nodes: defaultdict[str, list[LabelledSeries]] = defaultdict(list)
    for each in series:
        instance = _instance(each)
        of_instance = [*hosts[instance]] if instance else []
        host = each.labels.get(_HOST) or (of_instance[0] if len(of_instance) == 1 else instance)
        nodes[node_name(host) or "node"].append(each)
    return dict(nodes)


def _instance(series: LabelledSeries) -> str:
    return _PORT.sub("", series.labels.get(_INSTANCE, ""))
