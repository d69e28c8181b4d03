"""What a trial in S3 costs: requests and bytes, counted by the server; ours beside smdebug 1.0.34.

The server is moto's on this machine, so that times say little; requests and bytes are those that S3
would bill. The older library runs in its own interpreter, which RULE_RUNNER_OLD_SMDEBUG_PYTHON
names (see tests/system/old_library); without it its lines are left out. It judges the first steps
only: it reads the index of all, and then lists and reads anew for each tensor of each step.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import click
import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

STEPS, TENSORS, ELEMENTS = 200, 50, 1024
OLD_STEPS = 10  # the older library asks hundreds of questions at each of them
BUCKET, TRIAL = "bench", "runs/mnist"
KINDS = ("LIST", "GET index", "GET events", "GET other", "HEAD")
RULES = {
    "one rule": ["VanishingGradient"],
    "three rules": ["VanishingGradient", "ExplodingTensor", "LossNotDecreasing"],
}
OLD = """
import os, sys
import boto3

make = boto3.client
boto3.client = lambda name, **more: make(name, endpoint_url=os.environ["AWS_ENDPOINT_URL"], **more)
from smdebug.rules.rule import Rule
from smdebug.trials import create_trial


class Reads(Rule):
    def set_required_tensors(self, step):
        for name in self.names(step):
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        for tensor in self.req_tensors.get():
            self.judge(tensor, step)


class VanishingGradient(Reads):
    def names(self, step):
        return self.base_trial.tensor_names(step=step, collection="gradients")

    def judge(self, tensor, step):
        tensor.reduction_value(step, "mean", abs=True)


class ExplodingTensor(Reads):
    def names(self, step):
        return self.base_trial.tensor_names(step=step)

    def judge(self, tensor, step):
        tensor.value(step)


class LossNotDecreasing(ExplodingTensor):
    def names(self, step):
        return self.base_trial.tensor_names(step=step, collection="losses")


trial = create_trial(sys.argv[1])
rules = [globals()[name](trial, "") for name in sys.argv[2].split(",")]
for step in trial.steps()[: int(sys.argv[3])]:
    for rule in rules:
        rule.invoke(step)
"""


class Counted:
    """A WSGI application behind which another one answers; counts requests and bytes by kind."""

    def __init__(self, behind: Any) -> None:
        self.behind = behind
        self.requests: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Answer a request, and count it."""
        found = kind(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"])
        parts = list(self.behind(environ, start_response))
        with self._lock:
            self.requests[found] += 1
            self.bytes[found] += sum(map(len, parts))
        return parts


def kind(method: str, path: str, query: str) -> str:
    """Return what a request is about.

    >>> kind("GET", "/bench", "prefix=x"), kind("GET", "/bench/runs/mnist/index/0/x", "")
    ('LIST', 'GET index')
    """
    if method == "GET" and ("list-type" in parse_qs(query) or "prefix" in parse_qs(query)):
        return "LIST"
    folder = path.partition(TRIAL)[2].strip("/").partition("/")[0]
    if method == "GET":
        return f"GET {folder}" if folder in {"index", "events"} else "GET other"
    return method


@contextmanager
def counting_server() -> Iterator[Counted]:
    """Run the server on a free port, set the environment for it; give its counts."""
    import aws_server
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *_: object) -> None:
            """Log nothing."""

    counted = Counted(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, counted, threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= aws_server.ENVIRONMENT | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    try:
        yield counted
    finally:
        server.shutdown()


def written(workers: int) -> dict[str, bytes]:
    """Return the files of a trial: half of the tensors are gradients, one is a loss."""
    import rawtrial

    from rule_core.format import tfrecord

    rawtrial.masked = tfrecord.masked_crc  # the one byte by byte takes too long
    random = np.random.default_rng(0)
    found = {rawtrial.TRAINING_JOB_END: b"end"}
    for worker in [f"worker_{number}" for number in range(workers)]:
        patterns = {"gradients": ["^gradient"], "losses": ["loss"]}
        found[rawtrial.collections_key(worker)] = collections(rawtrial, patterns, workers)
        for step in range(STEPS):
            values = {"loss": np.full(1, 1 / (step + 1), "f4")}
            for number in range(TENSORS - 1):
                name = f"{'gradient' if number < TENSORS // 2 else 'weight'}/{number:02}"
                values[name] = random.normal(size=(ELEMENTS // 32, 32)).astype("f4")
            found |= rawtrial.step_files(step, values, "TRAIN", worker=worker)
    return found


def collections(rawtrial: Any, patterns: Mapping[str, Sequence[str]], workers: int) -> bytes:
    """Return a collections file with all that the older library wants to see in one."""
    import json

    document = json.loads(rawtrial.collections(patterns, workers))
    for one in document["collections"].values():
        one |= {"reduction_config": None, "save_config": None}
    return json.dumps(document).encode()


def upload(files: Mapping[str, bytes]) -> None:
    """Put a trial."""
    from rule_core.storage import aws

    client = aws.client("s3")
    client.create_bucket(Bucket=BUCKET)
    for key, content in files.items():
        client.put_object(Bucket=BUCKET, Key=f"{TRIAL}/{key}", Body=content)


def measure(counted: Counted, command: Sequence[str]) -> str:
    """Run a command; return its line of the table."""
    counted.requests.clear()
    counted.bytes.clear()
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        return f"failed with {done.returncode}: {done.stderr.strip()[-300:]}"
    requests = "".join(f"{counted.requests[one]:12}" for one in KINDS)
    megabytes = sum(counted.bytes.values()) / 1e6
    return f"{requests}{sum(counted.requests.values()):8}{megabytes:9.1f}{seconds:9.1f}"


def ours(rules: Sequence[str], output: Path) -> list[str]:
    """Return the command that evaluates rules."""
    options = [part for rule in rules for part in ("--rule", rule)]
    return [
        *(sys.executable, "-m", "rule_runner", "evaluate", "--trial", f"s3://{BUCKET}/{TRIAL}"),
        *(*options, "--keep-going", "--output", str(output), "--quiet"),
    ]


def run() -> None:
    """Print the table."""
    old = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON", "")
    head = "".join(f"{one:>12}" for one in KINDS) + f"{'all':>8}{'MB':>9}{'s':>9}"
    for workers in (1, 2):
        with counting_server() as counted, tempfile.TemporaryDirectory() as folder:
            files = written(workers)
            upload(files)
            size = sum(map(len, files.values())) / 1e6
            click.echo(f"{STEPS} steps, {TENSORS} tensors, {workers} worker(s), {size:.1f} MB")
            click.echo(f"{'':28}{head}")
            for name, rules in RULES.items():
                output = Path(folder) / name.replace(" ", "-")
                click.echo(f"{'ours, ' + name:28}{measure(counted, ours(rules, output))}")
            # Its requests grow with the steps and tensors, not with the workers.
            for name, rules in RULES.items() if old and workers == 1 else ():
                command = [
                    old,
                    "-I",
                    "-c",
                    OLD,
                    f"s3://{BUCKET}/{TRIAL}",
                    ",".join(rules),
                    str(OLD_STEPS),
                ]
                title = f"1.0.34, {name}, {OLD_STEPS} steps"
                click.echo(f"{title:28}{measure(counted, command)}")
