"""LineSource: the formats of lines keep the contract, and files in S3 are followed by ranges."""

import json
from pathlib import Path
from typing import ClassVar

import pytest
import s3_objects
from clocks import PatientClock
from faulty_s3 import FaultyS3
from source_files import Content, Followed

from rule_core.sources.contract import Row, SourceContract
from rule_core.sources.format import SourceFormat
from rule_core.sources.rows import csv_table, json_lines, line_reader, text_log
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.store import S3Store


class TestTable(SourceContract):
    """The contract of CSV."""

    source_format: ClassVar[SourceFormat] = csv_table.FORMAT

    def write(self, folder: Path, rows: list[Row]) -> None:
        lines = [f"{step},{values['loss']},{values['lr']}" for step, values in rows]
        text = "".join(f"{line}\n" for line in ["step,loss,lr", *lines])
        (folder / "metrics.csv").write_text(text)


class TestJsonLines(SourceContract):
    """The contract of JSON lines."""

    source_format: ClassVar[SourceFormat] = json_lines.FORMAT

    def write(self, folder: Path, rows: list[Row]) -> None:
        lines = [json.dumps({"step": step, **values}) for step, values in rows]
        (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))


class TestTextLog(SourceContract):
    """The contract of text logs."""

    source_format: ClassVar[SourceFormat] = text_log.FORMAT

    def write(self, folder: Path, rows: list[Row]) -> None:
        lines = [
            f" iteration {step:8}/  100 | loss: {values['loss']:.8E} | lr: {values['lr']} |"
            for step, values in rows
        ]
        (folder / "slurm-1.out").write_text("".join(f"{line}\n" for line in lines))


LINES: list[tuple[SourceFormat, bytes, bytes]] = [
    (csv_table.FORMAT, b"step,loss\n", b"%d,%d\n"),
    (json_lines.FORMAT, b"", b'{"step": %d, "loss": %d}\n'),
    (text_log.FORMAT, b"begun\n", b"iter %d: loss %d\n"),
]


@pytest.mark.parametrize(("source_format", "head", "line"), LINES)
def test_a_growing_file_in_s3(
    source_format: SourceFormat, head: bytes, line: bytes, faulty: FaultyS3
) -> None:
    client = s3_objects.client(faulty.endpoint)
    store = RetryingStore(S3Store(Bucket("s3://bucket/run", client)), PatientClock())
    run = Followed(source_format, "log", store=store)
    assert run.look() == {}  # it does not exist yet
    content = head
    for step in range(3):
        content += line % (step, step)
        s3_objects.put(faulty.endpoint, "run/", {"log": content + line[:3]})
        assert run.look() == losses(step + 1)
    s3_objects.put(faulty.endpoint, "run/", {"log": head + line % (0, 7)})
    assert run.look()["loss"][3:] == [("0 of segment 2", 7.0)]


def losses(count: int) -> Content:
    return {"loss": [(str(step), float(step)) for step in range(count)]}


@pytest.mark.parametrize(("source_format", "head", "line"), LINES)
def test_a_line_that_never_ends_is_named_once(
    source_format: SourceFormat, head: bytes, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_reader, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 300)
    content = head + line % (0, 0) + 2 * (b"x" * 5000 + b"\n") + line % (1, 1) + b"y" * 5000
    run = Followed(source_format, "log", {"log": content})
    assert run.end() == losses(2)
    number = head.count(b"\n") + 2
    assert f"log: line {number}: It has more than 8 MiB. Such lines are skipped." in run.problems
    assert len(run.problems) == 1


@pytest.mark.parametrize(("source_format", "head", "line"), LINES)
def test_other_content_is_a_segment_though_its_steps_go_on(
    source_format: SourceFormat, head: bytes, line: bytes
) -> None:
    run = Followed(source_format, "log")
    run.look(head + line % (1, 1) + line % (2, 2))
    content = run.look(head + line % (5, 5))
    assert content == {"loss": [("1", 1.0), ("2", 2.0), ("5 of segment 2", 5.0)]}
