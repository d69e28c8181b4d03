"""What judging safetensors checkpoints costs, beside loading them: `benchmarks/speed safetensors`.

Three checkpoints in shards are written, whose numbers are random; the largest tensor has two fifths
of each. One process opens them as a trial and asks six rules about each; another loads each tensor
with safetensors.numpy and computes the largest magnitude, the count of zeros and the norm of the
change, which those rules need. Both are given the page cache. Gigabytes of a checkpoint may be
given: ``bench_safetensors.py 10``.
"""

import json
import struct
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np

GIGABYTES, SHARDS, LAYERS, ROUNDS = 0.5, 4, 8, 3
STEPS = {100: 1.0, 200: 1.01, 300: 1.02}
BLOCK = 1 << 22  # random numbers, repeated
USED = """
import atexit, resource, sys

@atexit.register
def _used():
    found = resource.getrusage(resource.RUSAGE_SELF)
    print("used", found.ru_utime + found.ru_stime, found.ru_maxrss / 1024, file=sys.stderr)
"""
JUDGED = """
import sys
import builtin_rules
from rule_core.exceptions import SMDebugError
from rule_runner.engine.invocation import InProcessInvoker
from smdebug.trials import create_trial

WEIGHTS = {"collection_names": "weights"}
PARAMS = {
    "AllZero": WEIGHTS, "ExplodingTensor": WEIGHTS, "UnchangedTensor": WEIGHTS,
    "TensorVariance": WEIGHTS | {"max_threshold": 1e6},
    "PoorWeightInitialization": {"activation_inputs_regex": "weight$"}, "WeightUpdateRatio": {},
}
trial = create_trial(sys.argv[1])
jobs = []
for name, params in PARAMS.items():
    view = trial.share()
    jobs.append(InProcessInvoker(name, getattr(builtin_rules, name)(view, **params), [view]))
for step in trial.steps(show_incomplete_steps=True):
    for job in jobs:
        job.judge(step)
"""
LOADED = """
import sys
from importlib.util import find_spec
from pathlib import Path
import numpy as np
from safetensors import safe_open

paths = sorted(Path(sys.argv[1]).glob("*/*.safetensors"))
for path in paths:
    before = path.parents[1] / f"checkpoint-{int(path.parent.name[11:]) - 100}" / path.name
    with safe_open(path, "np") as opened:
        for name in opened.keys():
            value = opened.get_tensor(name)
            np.abs(value).max(), np.count_nonzero(value), np.var(value)
            if before.exists():
                with safe_open(before, "np") as earlier:
                    np.linalg.norm(value - earlier.get_tensor(name)), np.linalg.norm(value)
"""


def run(gigabytes: float = GIGABYTES) -> None:
    """Print what it took."""
    programs = {"rule-runner, six rules": JUDGED}
    if find_spec("safetensors") is None:
        click.echo("safetensors is not installed: its line is left out.")
    else:
        programs["safetensors, numpy"] = LOADED
    with tempfile.TemporaryDirectory() as folder:
        nbytes = written(Path(folder), gigabytes)
        click.echo(f"{len(STEPS)} checkpoints of {nbytes / len(STEPS) / 1e9:.2f} GB")
        click.echo(f"{'':24}   GB/s   CPU s   RSS, MB")
        for _ in range(ROUNDS):
            for what, program in programs.items():
                measure(what, program, folder, nbytes)


def written(root: Path, gigabytes: float) -> int:
    """Write the checkpoints; return their bytes."""
    block = (np.random.default_rng(0).standard_normal(BLOCK) * 0.02).astype(np.float32)
    rows = int(gigabytes * 1e9) // 4096
    sizes = [{"embed.weight": rows * 2 // 5}]
    for shard in range(1, SHARDS):
        names = (f"layers.{shard * LAYERS + layer}" for layer in range(LAYERS))
        per_layer = rows * 3 // 5 // (SHARDS - 1) // LAYERS
        sizes.append(
            {
                f"{name}.{part}": count
                for name in names
                for part, count in (("weight", per_layer), ("bias", 1))
            }
        )
    total = 0
    for step, scale in STEPS.items():
        folder = root / f"checkpoint-{step}"
        folder.mkdir()
        for place, shard_sizes in enumerate(sizes, 1):
            path = folder / f"model-{place:05}-of-{SHARDS:05}.safetensors"
            write_shard(path, shard_sizes, block * np.float32(scale))
            total += path.stat().st_size
    return total


def write_shard(
    path: Path, rows: dict[str, int], block: "np.ndarray[int, np.dtype[np.float32]]"
) -> None:
    """Write matrices of float32 with 1024 columns and so many rows."""
    header, offset = {}, 0
    for name, count in rows.items():
        end = offset + count * 4096
        header[name] = {"dtype": "F32", "shape": [count, 1024], "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    content = memoryview(block).cast("B")
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for start in range(0, offset, len(content)):
            file.write(content[: offset - start])


def measure(what: str, program: str, folder: str, nbytes: int) -> None:
    """Print what a program takes over the checkpoints."""
    began = time.monotonic()
    finished = subprocess.run(
        [sys.executable, "-c", USED + program, folder], check=True, capture_output=True, text=True
    )
    took = time.monotonic() - began
    cpu_s, memory = map(float, finished.stderr.split("used")[-1].split())
    click.echo(f"{what:24}   {nbytes / took / 1e9:4.2f}   {cpu_s:5.1f}   {memory:7.0f}")


if __name__ == "__main__":
    run(*map(float, sys.argv[1:]))
