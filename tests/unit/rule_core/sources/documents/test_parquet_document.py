"""Histories in Parquet files, with a stand-in for pyarrow where it is absent."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from source_files import Followed, read

from rule_core.sources.documents.parquet_document import FORMAT
from rule_core.sources.format import Recognized, SourceFolder, Unreadable

COLUMNS: dict[str, list[Any]] = {"_step": [0, 5], "loss": [2.0, None], "text": ["a", "b"]}
DATA = b"PAR1 ... PAR1"


def folder(data: bytes) -> SourceFolder:
    return SourceFolder("", ["a.parquet"], lambda _: (), lambda _: data, tail=lambda _: data)


@pytest.fixture
def pyarrow(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    group = SimpleNamespace(total_byte_size=100)
    file = SimpleNamespace(
        schema_arrow=SimpleNamespace(names=[*COLUMNS]),
        num_row_groups=1,
        metadata=SimpleNamespace(row_group=lambda _: group),
        read=lambda: SimpleNamespace(to_pydict=lambda: COLUMNS),
    )
    module = ModuleType("pyarrow.parquet")
    module.ParquetFile = lambda _: file  # type: ignore[attr-defined] # a stand-in
    monkeypatch.setitem(sys.modules, "pyarrow", ModuleType("pyarrow"))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", module)
    return SimpleNamespace(group=group, file=file)


@pytest.mark.usefixtures("pyarrow")
def test_columns() -> None:
    assert read(FORMAT, DATA) == {"loss": [("0", 2.0)]}
    (item,) = FORMAT.recognize(folder(DATA))
    assert isinstance(item, Recognized)


def test_a_data_set_is_refused(pyarrow: SimpleNamespace) -> None:
    pyarrow.file.schema_arrow.names = ["image", "label"]
    (item,) = FORMAT.recognize(folder(DATA))
    assert isinstance(item, Unreadable)


def test_large_columns_are_not_read(pyarrow: SimpleNamespace) -> None:
    pyarrow.group.total_byte_size = 1 << 40
    followed = Followed(FORMAT, "log", {"log": DATA})
    assert followed.end() == {}
    assert "more than the" in followed.problems[0]


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (item,) = FORMAT.recognize(folder(DATA))
    assert isinstance(item, Unreadable)
    assert "pip install 'rule-runner[parquet]'" in item.reason
    assert not [*FORMAT.recognize(folder(b"text"))]


def test_an_incomplete_file_waits() -> None:
    followed = Followed(FORMAT, "log", {"log": DATA[:-2]})
    assert followed.look() == {}
    assert not followed.problems
    followed.end()
    assert "not a complete Parquet file" in followed.problems[0]
