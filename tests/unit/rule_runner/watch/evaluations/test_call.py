"""The call that evaluates on a worker: real processes."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fleets
import pytest
import vanishing

from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.executors.protocol import watched
from rule_runner.watch.evaluations.call import evaluate_here

ROOT = Path(__file__).parents[5]


def request_of(tmp_path: Path, *, ended: bool = True) -> str:
    trial = vanishing.write_trial(tmp_path / "trial")
    if not ended:
        (trial / "training_job_end.ts").unlink()
    rules = (RuleRequest(name="LossNotDecreasing"),)
    output = str(tmp_path / "out")
    return EvaluationRequest(trial=str(trial), rules=rules, output=output, quiet=True).to_json()


def has_begun(tmp_path: Path) -> bool:
    return (tmp_path / "out" / "results.json").exists()


def test_failure_has_its_exit_code_and_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_text(
        "#!/bin/sh\ntest -s request.json || exit 4\necho 'Error: It failed.' >&2\nexit 3\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert evaluate_here("{}") == (3, "It failed.")


def test_executor_without_signals_stops_a_live_evaluation(tmp_path: Path) -> None:
    request, stop = request_of(tmp_path, ended=False), threading.Event()

    def run() -> tuple[int, str]:
        with watched(stop.is_set):
            return evaluate_here(request)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run)
        fleets.wait_until(lambda: has_begun(tmp_path))
        stop.set()
        assert running.result(60)[0] == 128 + signal.SIGTERM
    assert '"outcome":"Stopped"' in (tmp_path / "out" / "results.json").read_text().replace(" ", "")


def test_evaluation_ends_with_its_worker(tmp_path: Path) -> None:
    (tmp_path / "request").write_text(request_of(tmp_path, ended=False))
    program = (
        "import sys; from pathlib import Path\n"
        "from rule_runner.watch.evaluations.call import evaluate_here\n"
        "evaluate_here(Path(sys.argv[1]).read_text())"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "request")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    fleets.wait_until(lambda: has_begun(tmp_path))
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    assert len(children) == 1
    worker.kill()
    worker.wait()
    fleets.wait_until(lambda: not is_alive(children[0]))


def is_alive(process: str) -> bool:
    """Return whether a process runs; one that nobody waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
