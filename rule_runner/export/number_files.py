"""Exports of numbers: CSV, JSON lines and TensorBoard."""

import csv
import json
import tempfile
import time
from pathlib import Path
from typing import Final

from rule_core.format.summary_encoder import scalars_record, version_record
from rule_core.saving.tensorboard_writer import event_file_name
from rule_runner.export.saved_parts import SavedPart

STEP: Final = "step"
TOO_LARGE: Final = "it is beyond the range of the 32 bits of TensorBoard's scalars"


class JsonLinesExport:
    """One object a line: the step, and its numbers of one mode and worker."""

    def __init__(self, output: Path) -> None:
        self._file = output.open("x", encoding="utf-8")

    def add(self, saved: SavedPart) -> bool:
        """Write the numbers of a step."""
        numbers = saved.numbers()
        if numbers:
            print(json.dumps({STEP: saved.own_step} | numbers), file=self._file)
        return bool(numbers)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class CsvExport:
    """One row for each step, mode and worker; a column for each name.

    Which columns there are is known after the last row, so that rows are kept in a file first.
    """

    def __init__(self, output: Path) -> None:
        self._file = output.open("x", encoding="utf-8", newline="")
        self._columns: dict[str, None] = {}
        self._rows = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until close

    def add(self, saved: SavedPart) -> bool:
        """Keep the numbers of a step."""
        numbers = saved.numbers()
        if numbers:
            self._columns |= dict.fromkeys(numbers)
            print(json.dumps([saved.own_step, numbers]), file=self._rows)
        return bool(numbers)

    def close(self) -> None:
        """Write the table."""
        with self._file as file, self._rows as rows:
            table = csv.writer(file, lineterminator="\n")
            table.writerow([STEP, *self._columns])
            rows.seek(0)
            for step, numbers in map(json.loads, rows):
                table.writerow([step, *(numbers.get(name, "") for name in self._columns)])


class TensorBoardExport:
    """One event file with the numbers as scalars of 32 bits."""

    def __init__(self, output: Path) -> None:
        output.mkdir()
        now = time.time()
        self._file = (output / event_file_name(now)).open("xb")
        self._file.write(version_record(now))

    def add(self, saved: SavedPart) -> bool:
        """Write the numbers of a step."""
        values = {}
        for name, value in saved.numbers().items():
            try:
                scalars_record(0, 0.0, {name: value})
            except OverflowError:
                saved.omissions.add(name, TOO_LARGE)
            else:
                values[name] = value
        if values:
            self._file.write(scalars_record(saved.own_step, saved.time(), values))
        return bool(values)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
