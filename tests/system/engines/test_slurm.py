"""The template for Slurm, on a cluster of this machine: a controller, a node and real tasks."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_cluster
from fleets import fleet, plan, verdicts, write_runs
from slurm_cluster import TEMPLATE, SlurmCluster

TRIALS = 5

pytestmark = pytest.mark.skipif(
    bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "Slurm is there."
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with slurm_cluster.running(tmp_path_factory.mktemp("slurm")) as running:
        yield running


def sbatch(
    cluster: SlurmCluster, folder: Path, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """Submit the template as it is, and wait for all tasks."""
    return cluster.sbatch(folder, "--wait", *arguments)


def planned(folder: Path, name: str) -> Path:
    """Plan the trials of a folder for an output folder of this name."""
    return plan(folder / "runs", folder / name, folder / f"{name}.jsonl")


def logs(folder: Path, job: str) -> list[str]:
    """Return the logs of a job's tasks, in their order."""
    return [path.read_text() for path in sorted(folder.glob(f"rule-runner-{job}_*.log"))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    write_runs(folder / "runs", TRIALS)
    return folder


def test_an_array_judges_what_one_process_does(cluster: SlurmCluster, runs: Path) -> None:
    done = sbatch(cluster, runs, "--array=0-2", TEMPLATE, planned(runs, "array"))
    assert (done.returncode, done.stderr) == (0, "")
    job = done.stdout.strip()
    assert [log.splitlines()[-1] for log in logs(runs, job)] == [
        "Shard 0/3: 2 trials: 1 with issues, 1 without issues.",
        "Shard 1/3: 2 trials: 1 with issues, 1 without issues.",
        "Shard 2/3: 1 trial: 1 without issues.",
    ]
    assert fleet("run", "--plan", planned(runs, "alone")).exit_code == 0
    found = verdicts(runs / "array")
    assert len(found) == TRIALS
    assert found == verdicts(runs / "alone")


def test_the_same_command_again_judges_what_is_left(cluster: SlurmCluster, runs: Path) -> None:
    path = planned(runs, "again")
    assert fleet("run", "--plan", path, "--shard", "0/5").exit_code == 0
    (result,) = (runs / "again").rglob("results.json")
    before = result.stat()
    # IDs need not begin with 0, nor follow each other.
    done = sbatch(cluster, runs, "--array=3-7:4", TEMPLATE, path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [log.splitlines()[-1] for log in logs(runs, done.stdout.strip())] == [
        "Shard 0/2: 3 trials: 3 without issues; 1 had been judged before.",
        "Shard 1/2: 2 trials: 2 with issues.",
    ]
    assert result.stat() == before


def test_a_single_task_is_submitted_again(cluster: SlurmCluster, runs: Path) -> None:
    done = sbatch(cluster, runs, "--array=1", TEMPLATE, planned(runs, "single"), "5")
    assert (done.returncode, done.stderr) == (0, "")
    (log,) = logs(runs, done.stdout.strip())
    assert log.splitlines()[-1] == "Shard 1/5: 1 trial: 1 with issues."


def test_a_missing_plan_fails_the_tasks(cluster: SlurmCluster, tmp_path: Path) -> None:
    done = sbatch(cluster, tmp_path, "--array=0", TEMPLATE, "missing.jsonl")
    assert done.returncode == 2
    (log,) = logs(tmp_path, done.stdout.strip())
    assert "Plan 'missing.jsonl' cannot be read: No such file or directory." in log


def test_the_template_without_a_plan_says_how_to_give_it(
    cluster: SlurmCluster, tmp_path: Path
) -> None:
    done = sbatch(cluster, tmp_path, "--array=0", TEMPLATE)
    assert done.returncode == 1
    (log,) = logs(tmp_path, done.stdout.strip())
    assert "Give the plan: sbatch --array=0-7 fleet.sbatch PLAN" in log
