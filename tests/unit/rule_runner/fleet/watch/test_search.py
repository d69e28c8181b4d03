"""The search of roots: each at its pace, with what is wrong with it."""

import os
from pathlib import Path

from clocks import PatientClock
from structlog.testing import capture_logs
from watched import log

from rule_runner.fleet.watch.database import NewTrial
from rule_runner.fleet.watch.discovery import parse_root
from rule_runner.fleet.watch.pace import Pace
from rule_runner.fleet.watch.search import RootSearch


def test_new_trials_are_handed_over_once_and_a_missing_root_is_named(tmp_path: Path) -> None:
    clock, added = PatientClock(), list[NewTrial]()
    roots = [(parse_root(str(tmp_path / name)), Pace(clock, 1.0)) for name in ("runs", "absent")]
    search = RootSearch(roots, f"{tmp_path}/out/{{trial}}", added.extend)
    log(tmp_path / "runs")
    search.look(lambda: False)
    assert [trial.path for trial in added] == [f"{tmp_path}/runs/a"]
    assert not search.is_done
    (problem,) = search.problems
    assert "absent" in problem
    log(tmp_path / "absent", "b")
    search.look(lambda: False)
    assert len(added) == 1, "the pause is not over"
    for _ in range(2):
        clock.now += 100.0
        search.look(lambda: False)
    assert (len(added), search.problems, search.is_done) == (2, [], True)


def test_nothing_is_looked_for_after_the_stop(tmp_path: Path) -> None:
    log(tmp_path / "runs")
    added = list[NewTrial]()
    roots = [(parse_root(str(tmp_path / "runs")), Pace(PatientClock(), 1.0))]
    RootSearch(roots, f"{tmp_path}/out/{{trial}}", added.extend).look(lambda: True)
    assert added == []


def test_a_path_that_is_no_text_is_left_out_and_logged_once(tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path / "runs") + b"/\xff")
    Path(folder).mkdir(parents=True)
    (Path(folder) / "log.csv").write_text("step,loss\n1,0.5\n")
    clock, added = PatientClock(), list[NewTrial]()
    roots = [(parse_root(str(tmp_path / "runs")), Pace(clock, 1.0))]
    search = RootSearch(roots, f"{tmp_path}/out/{{trial}}", added.extend)
    with capture_logs() as logs:
        for _ in range(2):
            search.look(lambda: False)
            clock.now += 100.0
    assert added == []
    assert [entry["event"] for entry in logs] == ["trial_left_out"]
