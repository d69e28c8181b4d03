"""Trials that grow, and outputs that expire."""

import shutil
from pathlib import Path
from typing import Any

from kineto_writer import training
from watched import Watch, log

from rule_runner.results.retention import Retention


def test_verdicts_that_are_not_final_are_continued_when_data_arrive(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial, 124, outcome="Stopped", trial_ended=False)
    watch.tick()
    assert (watch.trial(trial).outcome, watch.trial(trial).final) == ("Stopped", False)
    watch.tick(100.0)
    assert watch.state(trial) == "judged"
    (trial / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    watch.tick(100.0)
    assert watch.state(trial) == "running"


def test_final_verdicts_are_not_continued(watch: Watch) -> None:
    trial = log(watch.runs)
    watch.tick()
    watch.end(trial)
    watch.tick()
    (trial / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    watch.tick(100.0)
    assert watch.state(trial) == "judged"


def test_traces_are_judged_anew_when_others_arrive(watch: Watch) -> None:
    first, second = training(2)
    traces = watch.runs / "traces"
    first.write(traces)
    watch.tick()
    (request,) = watch.evaluations.requests[watch.trial(traces).output]
    assert (request.trial, request.profiler_trial) == (None, str(traces))
    watch.end(traces, outcome="IssuesFound")
    watch.tick()
    watch.tick(3600.0)
    assert watch.state(traces) == "judged"
    second.write(traces)
    watch.tick(3600.0)
    *_, again = watch.evaluations.requests[watch.trial(traces).output]
    assert (again is not request, again.overwrite) == (True, True)
    watch.end(traces, outcome="IssuesFound")
    watch.tick(3600.0)
    assert len(watch.evaluations.requests[watch.trial(traces).output]) == 2


def test_expired_outputs_are_removed_and_their_trials_not_judged_again(
    tmp_path: Path, clock: Any
) -> None:
    log(tmp_path / "runs", "gone"), log(tmp_path / "runs", "kept")
    clock.now = 1_767_225_602.0  # the second after the results end
    watch = Watch(tmp_path, clock, retention=Retention(seconds=86400))
    gone, kept = (tmp_path / "runs" / name for name in ("gone", "kept"))
    watch.tick()
    for trial in (gone, kept):
        watch.end(trial)
    watch.tick()
    outputs = [Path(watch.trial(trial).output) for trial in (gone, kept)]
    assert all(output.exists() for output in outputs)
    shutil.rmtree(gone)
    watch.tick(7 * 86400.0)
    assert not any(output.exists() for output in outputs)
    assert [record.path for record in watch.controller.database.trials()] == [str(kept)]
    watch.tick(7 * 86400.0)
    assert watch.state(kept) == "judged"
    log(watch.runs, "gone")
    watch.tick()
    assert watch.state(gone) == "running"
