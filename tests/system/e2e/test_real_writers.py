"""Runs that their own writers write are judged alike while they are written and afterwards."""

import math
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rule_runner
from rule_core.clock import SystemClock
from rule_runner.results.schema import EvaluationResult

STEPS = 40
PAUSE_S = 0.03
RULES = [
    {
        "RuleConfigurationName": "Diverged",
        "RuleParameters": {"rule_to_invoke": "LossNotDecreasing", "num_steps": "4"},
    },
    {
        "RuleConfigurationName": "Exploding",
        "RuleParameters": {"rule_to_invoke": "ExplodingTensor", "collection_names": "losses"},
    },
]


def losses() -> Iterator[tuple[int, float]]:
    """Yield steps and losses as slowly as a quick training does.

    The loss falls for six steps, then rises for ever; the last one is NaN.
    """
    clock = SystemClock()
    for step in range(STEPS):
        clock.sleep(PAUSE_S)
        yield step, math.nan if step == STEPS - 1 else max(0.9**step, 0.1 * step)


def write_with_summary_writer(folder: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")
    pytest.importorskip("tensorboard", reason="tensorboard is not installed.")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for step, loss in losses():
            writer.add_scalar("train/loss", loss, step)
            writer.flush()


def write_with_tensorboardx(folder: Path) -> None:
    tensorboard_x = pytest.importorskip("tensorboardX", reason="tensorboardX is not installed.")
    with tensorboard_x.SummaryWriter(str(folder)) as writer:
        for step, loss in losses():
            writer.add_scalar("train/loss", loss, step)
            writer.flush()


def write_with_keras(folder: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed.")  # the backend
    keras = pytest.importorskip("keras", reason="keras is not installed.")
    logger = keras.callbacks.CSVLogger(str(folder / "log.csv"))
    logger.set_model(keras.Sequential())
    logger.on_train_begin()
    for epoch, loss in losses():
        logger.on_epoch_end(epoch, {"loss": loss, "accuracy": 0.5})
    logger.on_train_end()


def write_with_lightning(folder: Path) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed.")
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(str(folder), name="", version="", flush_logs_every_n_steps=1)
    for step, loss in losses():
        logger.log_metrics({"train_loss": loss}, step)
        if step == STEPS // 4:  # a new column: the file is rewritten
            logger.log_metrics({"val_loss": loss + 0.1}, step)
    logger.finalize("success")


def write_with_trainer(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed.")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed.")
    pytest.importorskip("accelerate", reason="accelerate is not installed.")
    given = losses()

    class Scripted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: Any) -> dict[str, Any]:
            del x
            return {"loss": (self.weight * 0).sum() + next(given)[1]}

    arguments = transformers.TrainingArguments(
        str(folder),
        max_steps=STEPS,
        logging_steps=1,
        save_steps=STEPS // 4,
        logging_nan_inf_filter=False,
        per_device_train_batch_size=1,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    data = [{"x": torch.ones(1)}] * STEPS
    transformers.Trainer(Scripted(), arguments, train_dataset=data).train()


def write_with_mlflow(folder: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed.")
    client = mlflow.MlflowClient(f"file://{folder}")
    run = client.create_run(client.create_experiment("test")).info.run_id
    for step, loss in losses():
        client.log_metric(run, "loss", loss, step=step)
    client.set_terminated(run)


WRITERS = [
    write_with_summary_writer,
    write_with_tensorboardx,
    write_with_keras,
    write_with_lightning,
    write_with_trainer,
    write_with_mlflow,
]


def evaluated(path: Path) -> EvaluationResult:
    return rule_runner.evaluate(
        path, RULES, keep_going=True, report=False, wait_for_trial=60, timeout=60
    )


def verdicts(result: EvaluationResult) -> dict[str, Any]:
    """Return what is known of each rule, without times and notes."""
    return {
        rule.configuration_name: (rule.status, rule.step, rule.evidence, rule.coverage)
        for rule in result.rules
    }


def run_below(folder: Path, write: Callable[[Path], None]) -> Path | None:
    """Return the folder of the run that `check` would judge, or None before it is there."""
    if write is write_with_mlflow:  # makes the folder of the experiment first
        return next((path.parent for path in folder.rglob("metrics") if path.is_dir()), None)
    return folder if any(path.is_file() for path in folder.rglob("*")) else None


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_verdicts_are_the_same_live_and_afterwards(
    write: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RULE_RUNNER_SOURCE_QUIET_S", "3")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    live: list[EvaluationResult] = []
    folder = tmp_path / "run"
    folder.mkdir()

    def follow() -> None:
        while (run := run_below(folder, write)) is None:
            if over.wait(0.02):
                return
        live.append(evaluated(run))

    over = threading.Event()
    follower = threading.Thread(target=follow)
    follower.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write(folder)
    finally:
        over.set()
        follower.join()
    run = run_below(folder, write)
    assert run is not None
    (run / "training_job_end.ts").touch()
    later = verdicts(evaluated(run))
    assert {status for status, *_ in later.values()} == {"IssuesFound"}
    assert later["Exploding"][1] == STEPS - 1 + (write is write_with_trainer)
    assert verdicts(live[0]) == later
