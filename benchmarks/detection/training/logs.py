"""Logs: trainings that write a CSV file instead of tensors, as many scripts do."""

import csv
from pathlib import Path
from typing import Any, Self

FIELDS = ("step", "train/loss", "val/loss", "train/lr", "train/grad_norm")


class CsvLog:
    """Writes a row for each logged step; empty where a value is missing."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True)
        self._file = (root / "metrics.csv").open("w", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, FIELDS)
        self._writer.writeheader()

    def write(self, step: int, **values: Any) -> None:
        """Write a row; keys are the last parts of the fields' names, and `val` for validation."""
        names = {"loss": "train/loss", "val": "val/loss", "lr": "train/lr"}
        names["grad_norm"] = "train/grad_norm"
        self._writer.writerow({"step": step} | {names[key]: value for key, value in values.items()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
