"""The search of roots: each at its pace, with what is wrong with it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from clocks import PatientClock
from structlog.testing import capture_logs
from watched import log

from rule_runner.errors import OutputError
from rule_runner.index.database import NewTrial
from rule_runner.watch import search as search_module
from rule_runner.watch.discovery import WatchRoot, parse_root
from rule_runner.watch.pace import PROMPT_S, Pace
from rule_runner.watch.search import RootSearch


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


def test_a_locked_index_delays_new_trials_only_while_it_is_locked(tmp_path: Path) -> None:
    clock, added, locked = PatientClock(), list[NewTrial](), [True]

    def add(trials: Sequence[NewTrial]) -> None:
        clock.now += 4.0
        if locked:
            locked.clear()
            raise OutputError
        added.extend(trials)

    search = RootSearch(
        [(parse_root(str(tmp_path)), Pace(clock, 0.1))], f"{tmp_path}/out/{{trial}}", add
    )
    log(tmp_path, "a")
    with pytest.raises(OutputError):
        search.look(lambda: False)
    search.look(lambda: False)
    assert len(added) == 1
    log(tmp_path, "b")
    clock.now += 0.2
    search.look(lambda: False)
    assert len(added) == 2, "the wait for the index is no work"


def test_a_slow_search_that_finds_trials_is_soon_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, added = PatientClock(), list[NewTrial]()
    new_trials = search_module.new_trials

    def slow(*arguments: Any) -> Iterator[NewTrial]:
        clock.now += 10.0
        return new_trials(*arguments)

    monkeypatch.setattr(search_module, "new_trials", slow)
    pace = Pace(clock, 0.1)
    search = RootSearch(
        [(parse_root(str(tmp_path)), pace)], f"{tmp_path}/out/{{trial}}", added.extend
    )
    for name in "ab":
        log(tmp_path, name)
        search.look(lambda: False)
        clock.now += PROMPT_S
    assert len(added) == 2
    search.look(lambda: False)
    clock.now += PROMPT_S
    assert not pace.is_due, "a slow search that finds nothing is rare"


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


def test_a_new_object_outside_of_known_trials_is_looked_for_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def new_trials(root: WatchRoot, *_: object) -> Iterator[NewTrial]:
        looks.append(root.text)
        return iter(())

    monkeypatch.setattr(search_module, "new_trials", new_trials)
    clock = PatientClock()
    texts = ["s3://bucket/runs", "s3://bucket/runs-2/*", "s3://other"]
    search = RootSearch(
        [(parse_root(text), Pace(clock, 60.0)) for text in texts], f"{tmp_path}/{{trial}}", print
    )
    search.known = {"s3://bucket/runs/known"}
    search.look(lambda: False)
    assert looks == texts
    for address, expected in (
        ("s3://bucket/runs/known/events/1", []),
        ("s3://bucket/elsewhere/1", []),
        ("s3://bucket/runs/new/index/1", texts[:1]),
        ("s3://bucket/runs-2/x/1", texts[1:2]),
        ("s3://other/1", texts[2:]),
        ("nonsense", []),
        ("", []),
    ):
        looks.clear()
        search.expect([address])
        search.look(lambda: False)
        search.look(lambda: False)
        assert looks == expected, address
