"""Retention touches only outputs that watch made."""

from pathlib import Path
from typing import Any

import pytest
from watched import result, save

from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.outputs import output_of
from rule_runner.index.states import WatchState
from rule_runner.results.retention import Retention
from rule_runner.watch.config import WatchConfig
from rule_runner.watch.options import WatchContext, WatchOptions
from rule_runner.watch.recorder import Recorder
from rule_runner.watch.sweeper import Sweeper


class Outputs:
    """An index with judged trials, and their outputs."""

    def __init__(self, folder: Path, clock: Any) -> None:
        clock.now = 1000.0
        self.clock = clock
        self.template = str(folder / "out" / "{trial}")
        self.database = WatchDatabase(folder / "watch.sqlite")

    def add(self, name: str, ended_at: float, *, output: str = "", of: str = "") -> Path:
        path = f"/runs/{name}"
        output = output or output_of(path, self.template)
        self.database.add([NewTrial(path, "/runs", True, False, output)], 0.0)
        trial = self.database.trial_at(path)
        assert trial is not None
        self.database.update(trial.id, state=WatchState.JUDGED, ended_at=ended_at)
        save(Path(output), result(of or path))
        return Path(output)

    def expire(self, *, runs: int | None = None, seconds: int | None = None) -> list[str]:
        config = WatchConfig(output=self.template)
        options = WatchOptions(retention=Retention(runs, seconds))
        context = WatchContext(config, self.database, self.clock, options)
        sweeper = Sweeper(context, Recorder(context))
        return [trial.path for trial in sweeper.remove_expired()]


@pytest.fixture
def outputs(tmp_path: Path, clock: Any) -> Outputs:
    return Outputs(tmp_path, clock)


def test_outputs_that_ended_too_long_ago(outputs: Outputs) -> None:
    old, new = outputs.add("old", 100.0), outputs.add("new", 900.0)
    assert outputs.expire(seconds=200) == ["/runs/old"]
    assert (old.exists(), new.exists()) == (False, True)
    assert outputs.expire(seconds=200) == []


def test_all_but_the_newest(outputs: Outputs) -> None:
    folders = [outputs.add(name, time) for name, time in (("a", 1.0), ("b", 3.0), ("c", 2.0))]
    assert outputs.expire(runs=2) == ["/runs/a"]
    assert [folder.exists() for folder in folders] == [False, True, True]


def test_files_of_others_stay(outputs: Outputs) -> None:
    folder = outputs.add("a", 1.0)
    (folder / "notes.txt").write_text("mine")
    assert outputs.expire(runs=0) == ["/runs/a"]
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_other_places_and_results_of_other_trials_stay(outputs: Outputs, tmp_path: Path) -> None:
    elsewhere = outputs.add("a", 1.0, output=str(tmp_path / "elsewhere"))
    foreign = outputs.add("b", 1.0, of="/runs/other")
    linked = outputs.add("c", 1.0)
    target = linked.rename(tmp_path / "target")
    linked.symlink_to(target)
    unfinished = outputs.add("d", 1.0)
    save(unfinished, result("/runs/d", ended_at=None))
    assert outputs.expire(runs=0) == []
    assert all(path.exists() for path in (elsewhere, foreign, target, unfinished))
