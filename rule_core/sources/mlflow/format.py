"""MlflowFormat: recognises and opens runs of MLflow, whatever store they are in."""

import re
from collections.abc import Iterator
from typing import Final

from rule_core.reading.source import Source
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.mlflow.folder_run import META, METRICS, FolderRun
from rule_core.sources.mlflow.run import KIND
from rule_core.sources.options import SourceOptions
from rule_core.storage.base import TrialStore

SQLITE_HEAD: Final = b"SQLite format 3\0"

_RUN: Final = re.compile(rb"(?m)^run_(?:id|uuid): *\S")
_DATABASE: Final = re.compile(r"(?i).*mlflow.*\.(db|sqlite3?)")
_RUN_ID: Final = re.compile(r"[0-9a-f]{32}")


class MlflowFormat:
    """Recognises and opens runs of MLflow."""

    kind: Final = KIND

    def recognize(self, folder: SourceFolder) -> Iterator[Recognized]:
        """Yield the folder of a run in ``mlruns``, and databases; see `SourceFormat`."""
        if META in folder.names and METRICS in folder.names and _RUN.search(folder.head(META)):
            yield Recognized(KIND, folder.key, "it holds meta.yaml of an MLflow run and metrics")
        for name in folder.names:
            if _DATABASE.fullmatch(name) and folder.head(name).startswith(SQLITE_HEAD):
                yield Recognized(KIND, folder.key + name, "it is a SQLite database of MLflow")

    def open(self, store: TrialStore, recognized: Recognized, options: SourceOptions) -> Source:
        """Return the reader of a run; see `SourceFormat`.

        The key is the folder of a run, ``FILE.db`` or ``FILE.db#RUN``, the address of a run on a
        tracking server, or the ID of a run on the server of ``MLFLOW_TRACKING_URI``.
        """
        del options
        key = recognized.key
        if key.startswith(("http://", "https://")) or _RUN_ID.fullmatch(key):
            from rule_core.sources.mlflow.server_run import ServerRun

            return ServerRun.at(key)
        if key and not key.endswith("/"):
            from rule_core.sources.mlflow.database_run import DatabaseRun

            return DatabaseRun.at(store, key)
        return FolderRun(store, key)


FORMAT: Final = MlflowFormat()
