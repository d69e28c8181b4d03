"""watch whose evaluations are tasks of a cluster: lost workers, lost clusters, stops."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import clusters
import fleets
import pytest
import vanishing
import yaml

from rule_runner.index.reader import IndexReader

ROOT: Final = Path(__file__).parents[3]
PROGRAM: Final = ROOT / "tests" / "support" / "watch_program.py"
RULES: Final = ["VanishingGradient", "LossNotDecreasing"]  # the second goes on after a finding
KINDS: Final = [
    ("distributed", clusters.DaskCluster),
    pytest.param("ray", clusters.RayCluster, marks=pytest.mark.nightly),
]


class Place:
    """A folder with trials, a configuration, and a controller over them."""

    def __init__(self, folder: Path, executor: str, trials: int = 3) -> None:
        self.folder = folder
        self.out = folder / "out"
        self._controllers: list[subprocess.Popen[bytes]] = []
        self.trials = [vanishing.write_trial(folder / "runs" / f"{n:02}") for n in range(trials)]
        config = {
            "roots": ["runs"],
            "judge": [{"rules": RULES}],
            "output": "out/{trial}",
            "executor": executor,
        }
        (folder / "fleet.yaml").write_text(yaml.safe_dump(config))

    def start(self, *options: str) -> "subprocess.Popen[bytes]":
        with self.log_path.open("ab") as log:
            controller = subprocess.Popen(
                [sys.executable, str(PROGRAM), "fleet.yaml", *options],
                cwd=self.folder,
                env=fleets.worker_environment()
                | {
                    "PYTHONPATH": os.pathsep.join(map(str, (ROOT, PROGRAM.parent))),
                    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s",
                },
                stdout=log,
                stderr=log,
            )
        self._controllers.append(controller)
        return controller

    def kill(self) -> None:
        """Kill controllers that a test which failed has left."""
        for controller in self._controllers:
            controller.kill()
            controller.wait()

    @property
    def log_path(self) -> Path:
        return self.folder / "log"

    def count(self, *words: str) -> int:
        """Return how many lines of the log have all of these words."""
        lines = self.log_path.read_text().splitlines()
        return sum(all(word in line for word in words) for line in lines)

    def wait_for(self, count: int, *words: str) -> None:
        fleets.wait_until(lambda: self.count(*words) >= count, 300)

    def states(self) -> set[str]:
        with IndexReader(self.out / "watch.sqlite") as reader:
            return {str(record.state) for record in reader.trials()}

    def check(self) -> None:
        """Check that each trial was judged, with nothing lost and nothing twice."""
        with IndexReader(self.out / "watch.sqlite") as reader:
            records = reader.trials()
        assert [record.outcome for record in records] == ["IssuesFound"] * len(self.trials)
        for record in records:
            output = Path(record.output)
            assert len(lines_of(output, "findings.jsonl")) == 1
            for rule in RULES:
                events = lines_of(output / rule, "events.jsonl")
                keys = [json.loads(line)["detail"]["EventKey"] for line in events]
                assert len(keys) == len({*keys})


def lines_of(folder: Path, name: str) -> list[str]:
    return [line for path in folder.rglob(name) for line in path.read_text().splitlines()]


@pytest.fixture
def cluster_of() -> Iterator[Callable[[clusters.Cluster], clusters.Cluster]]:
    """Return a function that has a cluster killed after the test."""
    started: list[clusters.Cluster] = []

    def remember(cluster: clusters.Cluster) -> clusters.Cluster:
        started.append(cluster)
        return cluster

    yield remember
    for cluster in started:
        cluster.kill()


@pytest.mark.parametrize(("library", "kind"), KINDS)
@pytest.mark.timeout(900)
def test_lost_workers_and_clusters_lose_nothing(
    library: str,
    kind: type[clusters.Cluster],
    tmp_path: Path,
    cluster_of: Callable[[clusters.Cluster], clusters.Cluster],
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    cluster = cluster_of(kind(tmp_path))
    place = Place(tmp_path, cluster.address)
    live = place.trials[0]
    (live / "training_job_end.ts").unlink()
    controller = place.start()
    try:
        place.wait_for(1, "executor_unavailable", "cannot be reached")
        assert place.count("trial_running") == 0
        cluster.start()
        place.wait_for(2, "trial_judged")
        place.wait_for(1, "issues_found", str(live))

        cluster.kill_worker()
        place.wait_for(1, "trial_lost", str(live))
        place.wait_for(2, "trial_running", str(live))
        assert place.count("restart=1", str(live)) == 1

        cluster.kill()
        place.wait_for(3, "trial_queued", str(live))
        place.wait_for(2, "executor_unavailable")
        cluster.start()
        place.wait_for(3, "trial_running", str(live))
        (live / "training_job_end.ts").touch()
        place.wait_for(1, "trial_judged", str(live))
        assert place.count("trial_lost") == 1
    finally:
        controller.send_signal(signal.SIGTERM)
        code = controller.wait(60)
    assert code == 143
    place.check()


@pytest.mark.parametrize(("library", "kind"), KINDS)
@pytest.mark.nightly
def test_controllers_that_die_or_stop_lose_nothing(
    library: str,
    kind: type[clusters.Cluster],
    tmp_path: Path,
    cluster_of: Callable[[clusters.Cluster], clusters.Cluster],
    request: pytest.FixtureRequest,
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed.")
    cluster = cluster_of(kind(tmp_path))
    cluster.start()
    place = Place(tmp_path, cluster.address, trials=2)  # the cluster has two places
    request.addfinalizer(place.kill)
    for trial in place.trials:
        (trial / "training_job_end.ts").unlink()
    controller = place.start()
    place.wait_for(1, "issues_found")
    controller.kill()
    controller.wait()

    controller = place.start()
    place.wait_for(2 * len(place.trials), "trial_running")
    controller.send_signal(signal.SIGTERM)
    assert controller.wait(40) == 143
    assert place.count("evaluations_left") == 0
    assert place.count("trial_lost") == 0
    assert place.states() == {"queued"}

    for trial in place.trials:
        (trial / "training_job_end.ts").touch()
    assert place.start("--once").wait(240) == 0, place.log_path.read_text()
    place.check()
