"""Every format of the product keeps the contract of sources, in a folder and in S3."""

import csv
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_objects
import yaml
from event_files import event, event_file, simple

from rule_core.sources.contract import Row, SourceContract
from rule_core.sources.formats import formats
from rule_core.storage.base import ByteRange, FileStatus, TrialStore
from rule_core.storage.uri import open_store

FORMATS = formats().by_kind


class CsvContract(SourceContract):
    source_format = FORMATS["csv"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        with (folder / "metrics.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["step", *rows[0][1]])
            table.writerows([step, *values.values()] for step, values in rows)


class JsonLinesContract(SourceContract):
    source_format = FORMATS["jsonl"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        lines = [json.dumps({"step": step, **values}) for step, values in rows]
        (folder / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))


class TextLogContract(SourceContract):
    source_format = FORMATS["text-log"]
    rows = [(10 * number, {"loss": 1.0 / 2**number}) for number in range(1, 9)]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        lines = [
            f"iter {step}: loss {values['loss']}, time 12.50ms, mfu 1.00%" for step, values in rows
        ]
        (folder / "train.log").write_text("".join(f"{line}\n" for line in lines))


class JsonContract(SourceContract):
    source_format = FORMATS["json"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        table = [{"step": step, **values} for step, values in rows]
        (folder / "log").write_text(json.dumps({"args": {"lr": [1, 2]}, "log": table}, indent=2))


class JsonColumnsContract(SourceContract):
    source_format = FORMATS["json"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        lists = {name: [values[name] for _, values in rows] for name in rows[0][1]}
        (folder / "history.json").write_text(
            json.dumps({"step": [step for step, _ in rows], **lists})
        )


class YamlContract(SourceContract):
    source_format = FORMATS["yaml"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        table = [{"step": step, **values} for step, values in rows]
        (folder / "history.yaml").write_text(yaml.safe_dump(table))


class NpzContract(SourceContract):
    source_format = FORMATS["npz"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        lists: dict[str, Any] = {name: [x[name] for _, x in rows] for name in rows[0][1]}
        np.savez(folder / "history.npz", step=[step for step, _ in rows], **lists)


class TrainerStateContract(SourceContract):
    source_format = FORMATS["trainer-state"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        log = [{"epoch": step / 100, "step": step, **values} for step, values in rows]
        state = {"global_step": rows[-1][0], "max_steps": 1000, "log_history": log}
        (folder / "trainer_state.json").write_text(json.dumps(state, indent=2))


class TensorBoardContract(SourceContract):
    source_format = FORMATS["tensorboard"]

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        records = [
            event(step, *(simple(name, value) for name, value in values.items()))
            for step, values in rows
        ]
        (folder / "events.out.tfevents.1700000000.host.1.0").write_bytes(event_file(*records))


class MlflowContract(SourceContract):
    source_format = FORMATS["mlflow"]
    in_turn = False

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        run = "0123456789abcdef0123456789abcdef"
        (folder / "metrics").mkdir(exist_ok=True)
        meta = f"run_id: {run}\nrun_uuid: {run}\nstatus: 1\nend_time: null\nartifact_uri: x\n"
        (folder / "meta.yaml").write_text(meta)
        for name in rows[0][1]:
            lines = [
                f"{1700000000000 + number} {values[name]} {step}\n"
                for number, (step, values) in enumerate(rows)
            ]
            (folder / "metrics" / name).write_text("".join(lines))


class SafetensorsContract(SourceContract):
    source_format = FORMATS["safetensors"]
    has_restarts = False

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        for step, values in rows:
            (folder / f"checkpoint-{step}").mkdir(exist_ok=True)
            path = folder / f"checkpoint-{step}" / "model.safetensors"
            if path.exists():  # a checkpoint that is written again is another one
                continue
            entries = {
                name: {"dtype": "F64", "shape": [1], "data_offsets": [8 * place, 8 * place + 8]}
                for place, name in enumerate(values)
            }
            header = json.dumps(entries).encode()
            content = np.array([*values.values()], "<f8").tobytes()
            path.write_bytes(len(header).to_bytes(8, "little") + header + content)


class TestCsv(CsvContract):
    pass


class TestJsonLines(JsonLinesContract):
    pass


class TestTextLog(TextLogContract):
    pass


class TestJson(JsonContract):
    pass


class TestJsonColumns(JsonColumnsContract):
    pass


class TestYaml(YamlContract):
    pass


class TestNpz(NpzContract):
    pass


class TestTrainerState(TrainerStateContract):
    pass


class TestTensorBoard(TensorBoardContract):
    pass


class TestMlflow(MlflowContract):
    pass


class TestSafetensors(SafetensorsContract):
    pass


class Mirrored:
    """A store in S3 with the files of a folder, which may change between calls."""

    def __init__(self, folder: Path, endpoint: str, prefix: str) -> None:
        self.uri = f"s3://{s3_objects.BUCKET}/{prefix}"
        self._folder = folder
        self._endpoint = endpoint
        self._prefix = prefix
        self._store = open_store(self.uri)
        self._sent: dict[str, bytes] = {}
        self.costs = self._store.costs

    def _send(self) -> None:
        files = {
            str(path.relative_to(self._folder)): path.read_bytes()
            for path in self._folder.rglob("*")
            if path.is_file()
        }
        changed = {key: data for key, data in files.items() if self._sent.get(key) != data}
        s3_objects.put(self._endpoint, self._prefix, changed)
        for key in self._sent.keys() - files:
            client = s3_objects.client(self._endpoint)
            client.delete_object(Bucket=s3_objects.BUCKET, Key=self._prefix + key)
        self._sent = files

    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        self._send()
        return self._store.list_keys(prefix, start_after=start_after)

    def status(self, key: str) -> FileStatus:
        self._send()
        return self._store.status(key)

    def read(self, key: str, byte_range: ByteRange | None = None) -> memoryview:
        return self._store.read(key, byte_range)


@pytest.mark.merge
class InS3:
    """Reads a folder's files from a bucket; fewer cuts, since each costs requests."""

    cuts = 5
    damages = 3
    _endpoint = ""
    _places = itertools.count()

    @pytest.fixture(autouse=True)
    def _bucket(self, aws_endpoint: str) -> None:
        self._endpoint = aws_endpoint
        s3_objects.make_bucket(aws_endpoint)

    def store(self, folder: Path) -> TrialStore:
        return Mirrored(folder, self._endpoint, f"{type(self).__name__}/{next(self._places)}/")


class TestCsvInS3(InS3, CsvContract):
    pass


class TestJsonLinesInS3(InS3, JsonLinesContract):
    pass


class TestTextLogInS3(InS3, TextLogContract):
    pass


class TestJsonInS3(InS3, JsonContract):
    pass


class TestTrainerStateInS3(InS3, TrainerStateContract):
    pass


class TestTensorBoardInS3(InS3, TensorBoardContract):
    pass


class TestMlflowInS3(InS3, MlflowContract):
    pass


class TestSafetensorsInS3(InS3, SafetensorsContract):
    pass


def test_the_rows_of_the_contract_are_finite() -> None:
    assert all(
        math.isfinite(value) for _, values in SourceContract.rows for value in values.values()
    )
