"""SourceContract: a source that keeps it passes, and each breach is found."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.contract import Row, SourceContract
from rule_core.sources.format import Recognized, SourceFolder, SourceFormat
from rule_core.sources.options import SourceOptions
from rule_core.storage.base import ObjectNotFoundError, TrialStore
from rule_core.storage.growing_file import GrowingFile

ROOT = Path(__file__).parents[4]


class _Reader:
    """Reads lines ``step loss lr``."""

    kind = "mine"
    description = "lines of numbers"

    def __init__(self, store: TrialStore, key: str) -> None:
        self._file = GrowingFile(store, key)
        self._rest = b""

    def read_new(self, record: SourceRecord) -> bool:
        data, restarted = self._file.read()
        if restarted:
            self._rest = b""
            record.begin_segment()
        *lines, self._rest = (self._rest + bytes(data)).split(b"\n")
        for line in lines:
            try:
                step, loss, lr = map(float, line.split())
                record.row(int(step), {"loss": loss, "lr": lr})
            except (ValueError, OverflowError):
                record.problem("a line is no row")
        return bool(data)

    def has_ended(self) -> None:
        return None

    def last_write(self) -> float:
        return self._file.modified


class _Format:
    kind = "mine"

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        for name in folder.names:
            if name.endswith(".mine"):
                yield Recognized("mine", folder.key + name, "its name ends in .mine")

    def open(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> Any:
        del options
        return _Reader(store, recognized.key)


def _lines(rows: Sequence[Row]) -> str:
    return "".join(f"{step} {values['loss']!r} {values['lr']!r}\n" for step, values in rows)


class TestLines(SourceContract):
    """The contract is kept."""

    source_format: ClassVar[SourceFormat] = _Format()

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        (folder / "run.mine").write_text(_lines(rows))


def _documented() -> type[SourceContract]:
    """Return the class of tests in the document, with the format beside it."""
    text = (ROOT / "docs" / "sources" / "recognition.md").read_text()
    code, tests = (
        re.search(rf"```python\n# {name}\b.*?```", text, re.DOTALL)
        for name in ("numbers_source.py", "test_numbers_source.py")
    )
    assert code is not None
    assert tests is not None
    module = ModuleType("numbers_source")
    exec(code[0].strip("`").removeprefix("python"), vars(module))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numbers_source", module)
        names: dict[str, Any] = {}
        exec(tests[0].strip("`").removeprefix("python"), names)
    contract = names["TestNumbers"]
    assert issubclass(contract, SourceContract)
    return contract


TestDocumented = _documented()


class _Broken(_Reader):
    """Breaks the contract in the way of its class's name."""


class DropsNotFinite(_Broken):
    def read_new(self, record: SourceRecord) -> bool:
        row = record.row
        record.row = lambda step, values, time=0.0: row(  # type: ignore[method-assign]
            step, {name: value for name, value in values.items() if abs(value) < 1e9}, time
        )
        try:
            return super().read_new(record)
        finally:
            record.row = row  # type: ignore[method-assign]


class TakesHalfLines(_Broken):
    def read_new(self, record: SourceRecord) -> bool:
        data = bytes(self._file.read().data)
        for line in data.splitlines():
            numbers = [*map(float, line.split())]
            if len(numbers) > 1:
                record.row(int(numbers[0]), {"loss": numbers[1], "lr": 0.125})
        return bool(data)


class CountsReads(_Broken):
    def read_new(self, record: SourceRecord) -> bool:
        data = bytes(self._file.read().data)
        for line in data.splitlines():
            numbers = [*map(float, line.split())]
            record.row(int(numbers[0]), {"loss": len(data), "lr": 0.125})
        return bool(data)


class RaisesOnDamage(_Broken):
    def read_new(self, record: SourceRecord) -> bool:
        def fail(text: str, key: str | None = None) -> None:
            raise ValueError(text, key)

        record.problem = fail  # type: ignore[method-assign]
        return super().read_new(record)


class RaisesWhenGone(_Broken):
    def read_new(self, record: SourceRecord) -> bool:
        try:
            return super().read_new(record)
        except ObjectNotFoundError as err:
            raise RuntimeError from err


class DropsWhatGoesBack(_Broken):
    def read_new(self, record: SourceRecord) -> bool:
        row = record.row
        record.row = lambda step, values, time=0.0: (  # type: ignore[method-assign]
            row(step, values, time) if step > record.last else None
        )
        return super().read_new(record)


@pytest.mark.parametrize(
    ("reader", "test"),
    [
        (DropsNotFinite, "test_values_that_are_not_finite_are_kept"),
        (CountsReads, "test_any_cut_gives_a_part_of_the_run"),
        (TakesHalfLines, "test_a_cut_file_that_goes_on_is_read_to_its_end"),
        (RaisesOnDamage, "test_damaged_bytes_do_no_harm"),
        (RaisesWhenGone, "test_files_may_disappear"),
        (DropsWhatGoesBack, "test_a_run_that_was_begun_anew_is_another_segment"),
    ],
)
def test_a_breach_is_found(
    reader: type[_Broken], test: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(
        _format: _Format, store: TrialStore, recognized: Recognized, _: SourceOptions
    ) -> Any:
        return reader(store, recognized.key)

    monkeypatch.setattr(_Format, "open", broken)
    with pytest.raises((AssertionError, ValueError, RuntimeError)):
        getattr(TestLines(), test)(tmp_path)
