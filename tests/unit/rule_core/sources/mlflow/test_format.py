"""MlflowFormat: the contract of sources, and addresses of runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import mlflow_runs
import pytest
from mlflow_runs import ROWS, RUN, Logged, add_rows, add_run, run_files

from rule_core.sources.contract import Row, SourceContract
from rule_core.sources.mlflow import FORMAT
from rule_core.trials.open_index import open_index


class TestMlflowFolder(SourceContract):
    source_format = FORMAT

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        logged = [
            Logged(name, place, value, step)
            for place, (step, values) in enumerate(rows)
            for name, value in values.items()
        ]
        for key, data in run_files(logged).items():
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def _cuts(self, whole: Path, folder: Path) -> Iterator[Path]:
        """Yield folders with the first rows: the files of a run grow beside each other."""
        del whole
        for count in range(len(self.rows)):
            self.write(folder / str(count), self.rows[:count])
            metric = folder / str(count) / "metrics" / "lr"
            if count:
                metric.write_bytes(metric.read_bytes()[:-count])  # in the middle of a line
            yield folder / str(count)


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
