"""Which files are traces by their names and starts, and which rank wrote them."""

import gzip
from pathlib import Path

import pytest

from rule_core.profiler.converted.format import KINETO, recognize
from rule_core.profiler.files.chunks import SNIFFED
from rule_core.profiler.kineto.trace_names import node_of, rank_in
from rule_core.storage.local import LocalStore

START = b'\n{\n "schemaVersion": 1,\n "traceEvents": ['


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (START, True),
        (gzip.compress(START), True),
        (gzip.compress(START)[:-9], True),
        (b'[{"schemaVersion": 1}]', False),
        (b'{"traceEvents": [{"cat": "cpu_op"}' + b" " * SNIFFED + b'], "schemaVersion": 1}', True),
        (b'{"loss": 1.0}', False),
        (b"\x1f\x8b damaged", False),
        (b"", False),
    ],
    ids=["plain", "compressed", "cut", "list", "events first", "other", "damaged", "empty"],
)
def test_a_json_file_is_a_trace_by_its_start(tmp_path: Path, text: bytes, expected: bool) -> None:
    (tmp_path / "a.json").write_bytes(text)
    assert (recognize(LocalStore(tmp_path), "a.json") is KINETO) is expected
    assert recognize(LocalStore(tmp_path), "missing.json") == ""


@pytest.mark.parametrize(
    ("key", "rank", "node"),
    [
        ("a_b.1795495895445239187.pt.trace.json.gz", 2, "rank-2"),
        ("gpu_7.1795495895445239187.pt.trace.json", None, "gpu-7"),
        ("iteration_5/rank12_trace.json", None, "rank-12"),
        ("kineto/9/7-box_1795495895445239_1795495895445300.pt.trace.json.gz", None, "7-box"),
        ("__.json", None, "trace"),
        ("x" * 300 + ".json", None, "x" * 100),
    ],
)  # fmt: skip
def test_the_node_of_a_trace(key: str, rank: int | None, node: str) -> None:
    assert node_of(key, rank) == node


def test_words_that_only_contain_rank_name_none() -> None:
    assert [rank_in(key) for key in ("frank1.json", "ranking.json", "rank.json")] == [None] * 3
