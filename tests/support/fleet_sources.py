"""Runs of every source that is read, as their writers save them, and plans over them."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import fleets
import mlflow_runs
import numpy as np
import profiler_writer
import rawtrial
import s3_objects
import safetensors_files
from event_files import event, event_file, simple

Files = dict[str, bytes]
Losses = dict[int, float]  # by step

WEIGHTS: Final = {"fc.weight": np.ones((2, 2), np.float32)}
# File name, first line, and the line of a step.
LINES: Final = {
    "JSON lines": ("log.jsonl", "", '{{"step": {step}, "loss": {loss}}}'),
    "CSV": ("metrics.csv", "step,loss", "{step},{loss}"),
    "tabs": ("metrics.tsv", "step\tloss", "{step}\t{loss}"),
    "CSV without steps": ("history.csv", "loss,val_loss", "{loss},{loss}"),
    "Keras": ("training.log", "epoch,loss,val_loss", "{step},{loss},{loss}"),
    "Lightning": ("metrics.csv", "epoch,step,train_loss,val_loss", "0,{step},{loss},"),
    "YOLO": ("results.csv", "epoch,train/box_loss,val/box_loss", "{step},{loss},{loss}"),
    "Megatron": ("train.log", "", "iteration {step}/ 80 | lm loss: {loss} | grad norm: 1.2 |"),
    "DeepSpeed": ("train.log", "", "steps: {step} loss: {loss} iter time (s): 0.512"),
    "nanoGPT": ("train.log", "", "iter {step}: loss {loss}, time 1.00ms, mfu 1.00%"),
    "modded-nanogpt": ("log.txt", "", "step:{step}/80 train_loss:{loss} step_avg:10.00ms"),
    "fairseq": ("train.log", "", "| epoch 001: {step} / 80 loss={loss}, num_updates={step}"),
    "fairseq in JSON": (
        "train.log",
        "",
        '| train | {{"train_loss": "{loss}", "train_num_updates": "{step}"}}',
    ),
}


def _lines(kind: str, losses: Losses) -> Files:
    name, head, line = LINES[kind]
    rows = (line.format(step=step, loss=loss) for step, loss in losses.items())
    return {name: "".join(f"{row}\n" for row in (head, *rows) if row).encode()}


def _trial(losses: Losses) -> Files:
    return fleets.trial_files(losses[80])


def _trial_of_two_workers(losses: Losses) -> Files:
    files = {"training_job_end.ts": b""}
    for worker in ("worker_0", "worker_1"):
        files[rawtrial.collections_key(worker)] = rawtrial.collections(fleets.COLLECTIONS, 2)
        for step, loss in losses.items():
            values = {name: np.full(2, loss, np.float32) for name in ("loss", "gradient/fc")}
            files |= rawtrial.step_files(step, values, worker=worker)
    return files


def _system_metrics(losses: Losses) -> Files:
    idle = 1.0 if losses[80] > 1 else 90.0
    files = profiler_writer.minute(0, gpu0=idle, cpu0=idle, every_s=1)
    return files | profiler_writer.minute(1, gpu0=idle, cpu0=idle, every_s=1) | profiler_writer.END


def _trainer_state(losses: Losses) -> Files:
    rows = [{"step": step, "loss": loss} for step, loss in losses.items()]
    state = {"global_step": 80, "max_steps": 80, "log_history": rows}
    return {"trainer_state.json": json.dumps(state).encode()}


def _tensorboard(losses: Losses) -> Files:
    events = [event(step, simple("loss", loss)) for step, loss in losses.items()]
    return {"events.out.tfevents.1700000000.host.1.0": event_file(*events)}


def _checkpoints(losses: Losses) -> Files:
    weights = safetensors_files.encode(WEIGHTS)
    return {f"checkpoint-{step}/model.safetensors": weights for step in losses}


def _shards(losses: Losses) -> Files:
    with TemporaryDirectory() as folder:
        for step, loss in losses.items():
            shards = (WEIGHTS, {"out.weight": np.full((2, 2), loss, np.float32)})
            safetensors_files.write_sharded(Path(folder) / f"checkpoint-{step}", *shards)
        return _files_below(Path(folder))


def _log_beside_checkpoints(losses: Losses) -> Files:
    return _checkpoints(losses) | _lines("nanoGPT", losses)


def _mlflow_rows(losses: Losses) -> list[mlflow_runs.Logged]:
    return [mlflow_runs.Logged("loss", step, loss, step) for step, loss in losses.items()]


def _mlflow_folder(losses: Losses) -> Files:
    return mlflow_runs.run_files(_mlflow_rows(losses), status=3)


def _mlflow_database(losses: Losses) -> Files:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mlflow.db"
        mlflow_runs.add_run(path)
        mlflow_runs.add_rows(path, _mlflow_rows(losses))
        mlflow_runs.end_run(path)
        return _files_below(Path(folder))


def _files_below(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


_FIRST: Final = ("CSV", "JSON lines", "nanoGPT")
# The first eight are of different formats.
SOURCES: Final[tuple[Callable[[Losses], Files], ...]] = (
    _trial,
    *(partial(_lines, kind) for kind in _FIRST),
    _trainer_state,
    _tensorboard,
    _checkpoints,
    _mlflow_folder,
    *(partial(_lines, kind) for kind in LINES if kind not in _FIRST),
    _trial_of_two_workers,
    _system_metrics,
    _shards,
    _log_beside_checkpoints,
    _mlflow_database,
)
LOCAL: Final = frozenset({_mlflow_database})  # a database in S3 cannot be read


def plan(folder: Path, endpoint: str, count: int) -> Path:
    """Plan trials of every source, one half in a folder and the other in S3.

    Half of the losses grow. With more than four trials of a source, each is in both places both
    ways.
    """
    s3_objects.make_bucket(endpoint)
    for number in range(count):
        turn, place = divmod(number, len(SOURCES))
        growth = 2 if (place // 2 + turn // 2) % 2 else 0.5
        files = SOURCES[place]({10 * step: growth**step for step in range(1, 9)})
        if (place + turn) % 2 and SOURCES[place] not in LOCAL:
            s3_objects.put(endpoint, f"runs/t{number:03}/", files)
        else:
            rawtrial.write(folder / "runs" / f"t{number:03}", files)
    roots = (folder / "runs", "s3://bucket/runs")
    arguments = ("--end-grace", "0", "--no-report", "--plan", folder / "plan.jsonl")
    result = fleets.fleet("plan", *roots, "--output", folder / "out", *arguments)
    assert result.exit_code == 0, result.output
    assert f"Planned {count} trials." in result.stderr
    return folder / "plan.jsonl"
