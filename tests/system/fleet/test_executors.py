"""Each executor, and Slurm: results, lost workers, errors, and stops."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any

import aws_server
import fleet_sources
import fleets
import pytest
import ray_cluster
import slurm_cluster
import uncounted

from rule_core.reading.source_index import QUIET_VARIABLE

SUPPORT = Path(__file__).parents[2] / "support"
MANY = 300
SHARDS = 4  # of the template for Slurm
OUTCOME = re.compile("(?m)^[0-9]+: .*$")  # of a line of the plan


def environment() -> dict[str, str]:
    """Return an environment in which the workers find the calls too."""
    return uncounted.environment() | ray_cluster.SETTINGS | {"PYTHONPATH": str(SUPPORT)}


@pytest.mark.parametrize(("spec", "library"), fleets.EXECUTORS)
@pytest.mark.timeout(600)
def test_executor_keeps_what_all_of_them_promise(spec: str, library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    program = [sys.executable, str(SUPPORT / "executor_contract.py"), spec, str(tmp_path)]
    done = subprocess.run(
        program, env=fleets.worker_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answers == {
        "results": [0, 2, 4, 6],
        "others": [0, 2, 4, 6],
        "poison": "WorkerLostError",
        "poison_attempts": 3,
        "survives": True,
        "error": True,
        "stopped": "stopped",
    }


def run(plan: Path, settings: Mapping[str, str], *options: str) -> tuple[int, str]:
    """Run a plan in a process of its own; return the exit code and what is printed."""
    command = [sys.executable, "-m", "rule_runner", "fleet", "run", "--plan", str(plan)]
    done = subprocess.run([*command, *options], env=settings, stdout=subprocess.PIPE, check=False)
    return done.returncode, done.stdout.decode()


class QuietRun:
    """A plan over every source, and what single processes leave of it."""

    def __init__(self, folder: Path, endpoint: str, count: int) -> None:
        self.plan = fleet_sources.plan(folder, endpoint, count)
        self.output = folder / "out"
        shards = 1 + count // 100
        with ThreadPoolExecutor(shards) as threads:
            judge = partial(run, self.plan, environment(), "--shard")
            runs = [*threads.map(judge, (f"{shard}/{shards}" for shard in range(shards)))]
        self.exit_code = max(code for code, _ in runs)
        self.lines = sorted(line for _, stdout in runs for line in stdout.splitlines())
        self.verdicts = fleets.verdicts(self.output)
        self.collected = fleets.collected(self.plan, self.output)
        shutil.rmtree(self.output)
        assert len(self.lines) == len({path.partition("/")[0] for path in self.verdicts}) == count
        assert self.collected[""].startswith(f"{count} trials: ")

    def check(self, exit_code: int, stdout: str) -> None:
        """Compare with what another run has printed and left, and remove the latter."""
        assert exit_code == self.exit_code, stdout
        assert sorted(OUTCOME.findall(stdout)) == self.lines
        verdicts = fleets.verdicts(self.output)
        assert verdicts.keys() == self.verdicts.keys()
        differing = {
            f"{path}: {name}": (value, self.verdicts[path].get(name))
            for path, verdict in verdicts.items()
            for name, value in verdict.items()
            if value != self.verdicts[path].get(name)
        }
        assert not differing
        assert fleets.collected(self.plan, self.output) == self.collected
        shutil.rmtree(self.output)


@pytest.fixture(scope="module")
def quiet_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], QuietRun]]:
    """Yield a function that plans so many trials and judges them, once for all executors."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:

        @cache
        def quiet_run(count: int) -> QuietRun:
            endpoint = stack.enter_context(aws_server.serving())
            # Logs that are quiet for ten minutes count as ended; the last runs begin later.
            quiet = {QUIET_VARIABLE: "86400"}
            settings = aws_server.ENVIRONMENT | {"AWS_ENDPOINT_URL": endpoint} | quiet
            for name, text in settings.items():
                patch.setenv(name, text)
            return QuietRun(tmp_path_factory.mktemp("sources"), endpoint, count)

        yield quiet_run


@pytest.mark.parametrize(
    ("spec", "library", "count"),
    [
        ("local:2", "json", 8),
        *(
            pytest.param(*executor, MANY, marks=pytest.mark.nightly)
            for executor in fleets.EXECUTORS
        ),
    ],
)
@pytest.mark.timeout(7200)
def test_each_source_has_the_same_results_on_each_executor(
    spec: str, library: str, count: int, quiet_runs: Callable[[int], QuietRun]
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    quiet_run = quiet_runs(count)
    quiet_run.check(*run(quiet_run.plan, environment(), "--executor", spec))


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_each_source_has_the_same_results_on_two_nodes_of_ray(
    quiet_runs: Callable[[int], QuietRun],
) -> None:
    pytest.importorskip("ray", reason="ray is not installed.")
    quiet_run = quiet_runs(MANY)
    with ray_cluster.running() as cluster:
        quiet_run.check(*run(quiet_run.plan, cluster.environment, "--executor", "ray"))


@pytest.mark.skipif(
    bool(slurm_cluster.missing()), reason=slurm_cluster.missing() or "Slurm is there."
)
@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_each_source_has_the_same_results_as_an_array_of_slurm(
    quiet_runs: Callable[[int], QuietRun], tmp_path: Path
) -> None:
    quiet_run = quiet_runs(MANY)
    with slurm_cluster.running(tmp_path / "slurm") as cluster:
        done = cluster.sbatch(tmp_path, "--wait", slurm_cluster.TEMPLATE, quiet_run.plan)
    logs = [path.read_text() for path in tmp_path.glob("rule-runner-*.log")]
    assert len(logs) == SHARDS
    quiet_run.check(done.returncode, "\n".join(logs))
