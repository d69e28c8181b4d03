"""MlflowFormat: the addresses of runs."""

from pathlib import Path

import mlflow_runs
import pytest
from mlflow_runs import ROWS, RUN, add_rows, add_run

from rule_core.trials.open_index import open_index


@pytest.mark.parametrize("part", [f"#{RUN}", "#latest", ""])
def test_a_run_in_a_database_is_opened_by_its_name(tmp_path: Path, part: str) -> None:
    path = tmp_path / "mlflow.db"
    add_run(path)
    add_rows(path, ROWS)
    index = open_index(f"mlflow:{path}{part}")
    index.refresh()
    assert len(index.steps) == 6


def test_a_run_on_a_server_is_opened_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with mlflow_runs.serving() as server:
        server.rows = [*ROWS]
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        for address in (server.page, RUN):
            index = open_index(f"mlflow:{address}")
            index.refresh()
            assert len(index.steps) == 6
