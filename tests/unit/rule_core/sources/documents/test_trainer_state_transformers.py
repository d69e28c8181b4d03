"""The state that a real Trainer leaves: followed, resumed, and read afterwards."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed.")
pytest.importorskip("torch", reason="torch is not installed.")

import torch
from source_files import Followed
from transformers import Trainer, TrainerCallback, TrainingArguments

from rule_core.sources.documents.trainer_state import FORMAT
from rule_core.storage.local import LocalStore

KEY = "trainer_state.json"


class Line(torch.nn.Module):
    """A model with one parameter; its loss is NaN from a step on."""

    def __init__(self, nan_from: int = 1000) -> None:
        super().__init__()
        self.slope = torch.nn.Parameter(torch.tensor([1.0]))
        self.nan_from = nan_from
        self.calls = 0

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        self.calls += self.training
        loss = ((self.slope * x - labels) ** 2).mean()
        return {"loss": loss * torch.nan if self.calls > self.nan_from else loss, "logits": x}


def trainer(folder: Path, steps: int, model: Line, *callbacks: Any) -> Any:
    rows = [{"x": torch.tensor([1.0]), "labels": torch.tensor([0.0])}] * 8
    arguments = TrainingArguments(
        str(folder),
        max_steps=steps,
        per_device_train_batch_size=1,
        logging_steps=1,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        save_total_limit=2,
        learning_rate=0.01,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    return Trainer(model, arguments, None, rows, rows, callbacks=[*callbacks])


def followed(folder: Path) -> Followed:
    return Followed(FORMAT, KEY, store=LocalStore(folder))


class Following(TrainerCallback):  # type: ignore[misc]
    """Looks at the run after each checkpoint."""

    def __init__(self, run: Followed) -> None:
        self.run = run

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        del args, control
        steps = [step for step, _ in self.run.look()["loss"]]
        assert steps == [str(step) for step in range(1, state.global_step + 1)]


def test_a_run_that_is_followed_equals_one_that_is_read_afterwards(tmp_path: Path) -> None:
    run = followed(tmp_path)
    training = trainer(tmp_path, 6, Line(), Following(run))
    training.train()
    assert run.index.sources[0].has_ended() is True
    training.save_state()
    content = run.end()
    assert run.problems == []
    assert content == followed(tmp_path).end()
    assert len(content["loss"]) == len(content["grad_norm"]) == 6
    assert [step for step, _ in content["eval_loss"]] == ["2", "4", "6"]
    assert "train_runtime" not in content
    assert run.index.segments == []


def test_a_resumed_run_goes_on(tmp_path: Path) -> None:
    trainer(tmp_path, 4, Line()).train()
    run = followed(tmp_path)
    assert len(run.look()["loss"]) == 4
    trainer(tmp_path, 6, Line()).train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    assert len(run.end()["loss"]) == 6
    assert run.index.segments == []
    assert run.content() == followed(tmp_path).end()


def test_a_run_that_is_resumed_from_an_earlier_checkpoint_repeats_steps(tmp_path: Path) -> None:
    trainer(tmp_path, 4, Line()).train()
    run = followed(tmp_path)
    run.look()
    other = trainer(tmp_path, 6, Line())
    other.args.learning_rate = 0.5
    other.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    steps = [step for step, _ in run.end()["loss"]]
    repeated = [step for step in steps if "segment" in step]
    assert steps[:4] == ["1", "2", "3", "4"]
    assert repeated[-2:] == ["5 of segment 2", "6 of segment 2"]


def test_the_trainer_hides_nan_in_its_losses(tmp_path: Path) -> None:
    trainer(tmp_path, 4, Line(nan_from=2)).train()
    content = followed(tmp_path).end()
    assert all(value == value for _, value in content["loss"])
    assert any(value != value for _, value in content["grad_norm"])
