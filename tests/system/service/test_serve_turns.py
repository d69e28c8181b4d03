"""The command `serve` with more trials than slots, and with a full disk."""

import math
import os
import subprocess
import threading
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fleets
import pytest
import serving
from serving import Serving

RULES = "judge: [{trials: '*', rules: [LossNotDecreasing]}]\n"


def write_healthy(folder: Path, rows: int, first: int = 0) -> None:
    """Write rows of a loss that falls to a log."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.csv").open("a") as log:
        if not first:
            log.write("step,loss,lr\n")
        for step in range(first, first + rows):
            log.write(f"{step},{math.exp(-step / 500)},0.1\n")


@contextmanager
def growing(folders: list[Path]) -> Iterator[None]:
    """Let healthy trials grow inside the block."""
    ended = threading.Event()

    def grow() -> None:
        row = 20
        while not ended.wait(0.5):
            for folder in folders:
                write_healthy(folder, 5, row)
            row += 5

    for folder in folders:
        write_healthy(folder, 20)
    thread = threading.Thread(target=grow)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def trials(served: Serving) -> dict[str, Any]:
    listed = served.get("/api/v1/trials?limit=100")["trials"]
    return {Path(trial["path"]).name: trial for trial in listed}


def outcomes(served: Serving, name: str) -> set[str]:
    """Return the outcomes of the rules of a trial."""
    return {rule["outcome"] for rule in trials(served).get(name, {"rules": ()})["rules"]}


def ready(served: Serving) -> int:
    try:
        with served.open("/readyz") as answer:
            return int(answer.status)
    except urllib.error.HTTPError as err:
        return err.code


@pytest.mark.parametrize(
    ("limit", "healthy", "faulty"),
    [("max_concurrent: 1\n", 1, 1), pytest.param("", 12, 4, marks=pytest.mark.nightly)],
)
def test_faulty_trials_are_found_while_growing_ones_hold_all_slots(
    tmp_path: Path, limit: str, healthy: int, faulty: int
) -> None:
    runs = tmp_path / "runs"
    (tmp_path / "fleet.yaml").write_text(f"roots: [runs]\n{RULES}{limit}")
    good = [runs / f"healthy-{number:02}" for number in range(healthy)]
    with growing(good), Serving(tmp_path, "--config", "fleet.yaml") as served:
        fleets.wait_until(lambda: any(t["state"] == "running" for t in trials(served).values()))
        for number in range(faulty):
            serving.write(runs / f"faulty-{number}", rows=200)
        for number in range(faulty):
            fleets.wait_until(lambda n=number: outcomes(served, f"faulty-{n}") == {"IssuesFound"})
        listed = trials(served)
        assert {listed[trial.name]["state"] for trial in good} <= {"running", "queued"}
        assert {listed[trial.name]["outcome"] for trial in good} == {""}
        assert "Stopped" not in set.union(*(outcomes(served, trial.name) for trial in good))


@pytest.mark.nightly
def test_a_full_disk_makes_serve_unready_and_costs_no_verdict(tmp_path: Path) -> None:
    disk, fill = tmp_path / "disk", tmp_path / "disk" / "fill"
    disk.mkdir()
    (tmp_path / "runs").mkdir()
    (tmp_path / "fleet.yaml").write_text(f"roots: [runs]\n{RULES}output: disk/{{trial}}\n")
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("No file system can be mounted here.")
    try:
        with Serving(tmp_path, "--config", "fleet.yaml") as served:
            assert ready(served) == 200
            space = os.statvfs(disk)
            fill.write_bytes(b"0" * (space.f_bavail * space.f_frsize - 80_000))
            serving.write(tmp_path / "runs" / "faulty", rows=200)
            fleets.wait_until(lambda: ready(served) == 503)
            fill.unlink()
            fleets.wait_until(lambda: ready(served) == 200)
            fleets.wait_until(lambda: outcomes(served, "faulty") == {"IssuesFound"})
            assert served.stop() == 143
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
