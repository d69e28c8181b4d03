import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import fleets
import pytest
from executed_calls import doubled, hang, lose_worker, process_id, raise_key_error, work

from rule_core.kernels.cores import THREADS
from rule_runner.executors import WorkerLostError, local, open_executor
from rule_runner.executors.local import LocalExecutor


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    with LocalExecutor(1) as opened:
        yield opened


def wait_for(path: Path) -> str:
    fleets.wait_until(lambda: path.exists() and path.read_text(encoding="utf-8"))
    return path.read_text(encoding="utf-8")


def has_ended(process: int) -> bool:
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for_end(process: int) -> None:
    fleets.wait_until(lambda: has_ended(process))


def test_one_worker_runs_all_calls(executor: LocalExecutor) -> None:
    processes = [executor.submit(process_id) for _ in range(5)]
    assert list(executor.map(doubled, range(3))) == [0, 2, 4]
    assert len({future.result() for future in processes}) == 1


@pytest.mark.parametrize(("limit", "expected"), [(None, "2"), ("1", "1")])
def test_workers_share_the_cores(
    limit: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "measuring_threads", lambda: 5)
    monkeypatch.delenv(THREADS, raising=False)
    if limit is not None:
        monkeypatch.setenv(THREADS, limit)
    with LocalExecutor(2) as opened:
        assert opened.submit(os.getenv, THREADS).result() == expected


def test_error_of_a_call_is_that_of_its_future(executor: LocalExecutor) -> None:
    with pytest.raises(KeyError, match="conv1"):
        executor.submit(raise_key_error, "conv1").result()


def test_call_that_loses_its_worker_is_attempted_again(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    lost = executor.submit(lose_worker, tmp_path / "log", 3)
    other = executor.submit(doubled, 4)
    assert lost.result() == 3
    assert other.result() == 8


def test_call_that_loses_three_workers_fails_alone(executor: LocalExecutor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    lost = executor.submit(lose_worker, log, 99)
    other = executor.submit(doubled, 4)
    with pytest.raises(WorkerLostError, match="The worker process was lost 3 times"):
        lost.result()
    assert log.read_text(encoding="utf-8").count("attempt") == 3
    assert other.result() == 8


def test_error_stops_running_calls_and_cancels_others(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with suppress(ZeroDivisionError), open_executor("local:1") as executor:
        running = executor.submit(work, started, 60)
        waiting = executor.submit(doubled, 1)
        wait_for(started)
        raise ZeroDivisionError
    assert running.result(0) == "stopped"
    assert waiting.cancelled()


def test_call_that_ignores_the_stop_ends_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "STOP_GRACE_S", 0.1)
    with LocalExecutor(1) as executor:
        running = executor.submit(hang, tmp_path / "started")
        process = wait_for(tmp_path / "started")
        executor.stop()
    assert isinstance(running.exception(0), WorkerLostError)
    wait_for_end(int(process))


def test_workers_end_when_the_process_that_made_them_is_killed(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = (
        "import sys; from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[3] / 'support')!r})\n"
        "from executed_calls import hang; from rule_runner.executors import open_executor\n"
        "if __name__ == '__main__':\n"
        "    with open_executor('local:1') as executor:\n"
        f"        executor.submit(hang, Path({str(started)!r}))\n"
    )
    (tmp_path / "driver.py").write_text(program, encoding="utf-8")
    with subprocess.Popen([sys.executable, tmp_path / "driver.py"]) as driver:
        worker = int(wait_for(started))
        driver.kill()
    wait_for_end(worker)
