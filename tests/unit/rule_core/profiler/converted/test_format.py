"""Which format a file is of, by its name and its start."""

import gzip
import pickle
from pathlib import Path

import pytest
from flight_recorder_writer import Dump
from kineto_writer import KinetoTrace
from prometheus_writer import write_node

from rule_core.profiler.converted.format import FLIGHT_RECORDER, KINETO, PROMETHEUS, recognize
from rule_core.storage.local import LocalStore


def test_files_are_known_by_their_start(tmp_path: Path) -> None:
    KinetoTrace().write(tmp_path, "trace.json")
    Dump(0, 1).write(tmp_path, "empty_rank_0")
    dump = Dump(1, 1)
    dump.join()
    dump.write(tmp_path, "dump1.json")
    answer = next(write_node(tmp_path, [[1.0]]).glob("gpu-box*"))
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress(answer.read_bytes()))
    expected = {
        "trace.json": KINETO,
        "empty_rank_0": FLIGHT_RECORDER,
        "dump1.json": FLIGHT_RECORDER,
        answer.name: PROMETHEUS,
        "packed.json.gz": PROMETHEUS,
    }
    store = LocalStore(tmp_path)
    assert {key: recognize(store, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("nccl_trace_rank_0", {"entries": []}, "convert the dumps where they were written"),
        ("fr_rank_0", {"pg_config": {}}, "convert the dumps where they were written"),
        ("dump0.json", {"pg_config": {}}, "convert the dumps where they were written"),
        ("a.json", {"loss": 1.0}, "It is a pickle, not JSON: pickles are never loaded."),
        ("model_rank_0", {"weights": 1}, ""),
    ],
)
def test_pickles_are_refused(tmp_path: Path, name: str, content: object, sentence: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(content, protocol=2))
    refusal = recognize(LocalStore(tmp_path), name)
    assert isinstance(refusal, str)
    assert sentence in refusal
    assert bool(refusal) is bool(sentence)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        ('{"schema": "1.0.3-chakra", "pid": 1, "nodes": [', "an execution trace of PyTorch"),
        ('{"rocprofiler-sdk-tool": [', "output of rocprofv3"),
        ('{"traceEvents": [{"ph": "X", "cat": "gc"}]}', "a trace in Chrome's format"),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.pt.trace.json"])
def test_a_refusal_names_the_kind_of_file(tmp_path: Path, name: str, text: str, kind: str) -> None:
    (tmp_path / name).write_text(text)
    refusal = recognize(LocalStore(tmp_path), name)
    assert isinstance(refusal, str)
    assert refusal.startswith(f"It is {kind}")


def test_what_cannot_be_read_is_of_no_format(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere")
    refusal = recognize(LocalStore(tmp_path), "link.json")
    assert isinstance(refusal, str)
    assert refusal.startswith("Cannot read 'link.json'")
    (tmp_path / "empty.json").touch()
    assert recognize(LocalStore(tmp_path), "empty.json") == ""
