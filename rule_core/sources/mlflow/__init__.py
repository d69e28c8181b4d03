"""Runs of MLflow: in a folder ``mlruns``, in a SQLite database or on a tracking server."""

from typing import Final

from rule_core.sources.mlflow.format import MlflowFormat

FORMAT: Final = MlflowFormat()
