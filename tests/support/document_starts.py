"""What is in a reader's folder before a page of the documentation begins, by page."""

import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import event_files
import flight_recorder_writer
import mlflow_runs
import numpy as np
import python_profile_writer
import safetensors_files
import wandb_files
from documents import ROOT, Reader, blocks_in
from kineto_writer import write_training
from profiled_job import write_job
from prometheus_writer import write_node
from tool_profile_writer import sampled, scalene_entry, write_scalene, write_speedscope

STEPS: Final = range(0, 200, 10)
LONG_AGO: Final = 1_760_000_000
LOSSES: Final = [2 / (1 + step) for step in STEPS]
# A script that prints what it does, where the README's one saves it.
PRINTING: Final = "for step in range(20):\n    print(f'step {step}: loss {2 / (1 + step):.4f}')\n"
# What scripts/new_rule and scripts/rule_pages need of a checkout.
CHECKOUT: Final = (
    *("builtin_rules", "rule_core", "rule_runner", "smdebug", "scripts", "docs/rules"),
    "examples/rules",
    *("tests/unit/builtin_rules", "tests/system/evaluation", "tests/support"),
    *("pyproject.toml", "tests/conftest.py"),
)


def nothing(reader: Reader) -> None:
    """Begin in an empty folder."""


def readme(reader: Reader) -> None:
    """Begin where the README ends: with its scripts, its rule and its trial."""
    for block in blocks_in("README.md"):
        if block.file:
            (reader.folder / block.file).write_text(block.code, "utf-8")
    problem = reader.execute([sys.executable, "train.py"])
    assert not problem, problem


def checkout(reader: Reader) -> None:
    """Begin in a copy of this checkout, with its virtual environment."""
    for name in CHECKOUT:
        source, target = ROOT / name, reader.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    (reader.folder / ".venv").symlink_to(sys.prefix)
    reader.environment["PYTHONPATH"] = str(reader.folder)


def profiles(reader: Reader) -> None:
    """Begin with profiles of trainings on GPUs, of several tools."""
    runs = reader.folder / "runs"
    write_training(runs / "traces", 2)
    stacks = sampled([[0], [0, 1]], [1.0, 2.0])
    write_speedscope(
        runs, [("main", "train.py", 1), ("step", "train.py", 5)], stacks, name="spy.json"
    )
    write_scalene(runs, [scalene_entry("step", 5, n_peak_mb=3)], name="scalene.json")
    dumps = flight_recorder_writer.training(ranks=2)
    dumps[0].join()
    flight_recorder_writer.write_all(runs / "dumps", dumps)
    (reader.folder / "dumps").mkdir()
    for rank, dump in enumerate(dumps):
        pickled = pickle.dumps(dump.document())
        (reader.folder / "dumps" / f"nccl_trace_rank_{rank}").write_bytes(pickled)
    write_node(runs / "gpus", [[90.0] * 8])
    root = write_job(runs / "profile", nodes=2)
    (root / "system" / "training_job_end.ts").touch()
    python_profile_writer.write_job(root)
    (reader.folder / "train.py").write_text("")


def files_of_tools(reader: Reader) -> None:
    """Begin beside what trainings leave that know nothing of rule-runner."""
    folder = reader.folder
    readme(reader)
    (folder / "train.py").write_text(PRINTING)
    lines = [f"step {step} loss {loss}" for step, loss in zip(STEPS, LOSSES, strict=True)]
    rows = [
        f"{step},{loss},{1 + loss}" for step, loss in zip(range(len(LOSSES)), LOSSES, strict=True)
    ]
    histories = "step,loss,val_loss\n" + "\n".join(rows) + "\n"
    patterned = [f"Step {step}: {loss}, 1.0" for step, loss in zip(STEPS, LOSSES, strict=True)]
    tables = {
        "slurm-17.out": "\n".join(lines) + "\n",
        "lightning_logs/version_0/metrics.csv": histories,
        "runs/metrics.csv": histories,
        "runs/out.txt": "\n".join(lines) + "\n",
        "runs/bert/metrics.csv": histories,
        "runs/odd/metrics.csv": histories.replace(
            "step,loss,val_loss", "when,objective,holdout_objective"
        ),
        "train.log": "\n".join(patterned) + "\n",
    }
    _mlflow(folder)
    series = event_files.losses(STEPS)
    run = wandb_files.run(
        [(step, {"loss": loss}) for step, loss in zip(STEPS, LOSSES, strict=True)]
    )
    contents = {
        **{name: text.encode() for name, text in tables.items()},
        "runs/tensorboard/events.out.tfevents.1.host": event_files.event_file(*series),
        "wandb/offline-run-20260101_000000-x1y2z3/run-x1y2z3.wandb": run,
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "wandb" / "latest-run").symlink_to("offline-run-20260101_000000-x1y2z3")
    generator = np.random.default_rng(0)
    for step in (100, 200, 300):
        path = folder / "outputs" / "my-run" / f"checkpoint-{step}" / "model.safetensors"
        safetensors_files.write(path, {"fc.weight": generator.normal(size=(4, 4)).astype("f4")})
    shutil.copy(path, folder / "model.safetensors")
    for file in folder.rglob("*"):  # a log that was just written may still grow
        os.utime(file, (LONG_AGO, LONG_AGO))


def _mlflow(folder: Path) -> None:
    rows = [
        mlflow_runs.Logged("loss", step, loss, step)
        for step, loss in zip(STEPS, LOSSES, strict=True)
    ]
    run = f"mlruns/1/{mlflow_runs.RUN}/"
    for name, content in mlflow_runs.run_files(rows, run, status=3).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    mlflow_runs.add_run(folder / "mlflow.db")
    mlflow_runs.add_rows(folder / "mlflow.db", rows)
    mlflow_runs.end_run(folder / "mlflow.db")


STARTS: Final[dict[str, Callable[[Reader], None]]] = {
    "README.md": nothing,
    "CONTRIBUTING.md": checkout,
    "docs/profiler.md": profiles,
    "docs/export.md": files_of_tools,
    **dict.fromkeys(
        (
            f"docs/sources/{name}.md"
            for name in ("README", "mlflow", "recognition", "safetensors", "tensorboard", "wandb")
        ),
        files_of_tools,
    ),
}


def begin(page: str, reader: Reader) -> None:
    """Prepare the folder of a page."""
    STARTS.get(page, readme)(reader)
