"""What the Lightning callback saves of a training, and that it never stands in its way."""

import itertools
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lightning", reason="lightning is not installed.")

import torch
from hooked import opened
from lightning import LightningModule, Trainer
from recorded_profiles import events, profiler_config
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import smdebug.lightning as smd
from rule_core.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from rule_core.saving.trial_recorder import TrialRecorder

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.. is deprecated"),
]
TRAIN, EVAL, PREDICT = smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT
BATCHES = 4
WEIGHT = "gradient/Net_layers.0.weight"


class Net(LightningModule):
    """Calls itself or its layers, as modules do; fails at batch `fails_at`."""

    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        self.criterion = nn.CrossEntropyLoss()
        self.fails_at = fails_at

    def forward(self, inputs: Any) -> Any:
        return self.layers(inputs)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if batch_idx == self.fails_at:
            msg = "The training's own error."
            raise ArithmeticError(msg)
        loss = self.criterion(self(batch[0]), batch[1])
        self.log("seen", float(batch_idx), on_step=True, on_epoch=True)
        return {"loss": loss}

    def validation_step(self, batch: Any, _: int) -> Any:
        loss = self.criterion(self.layers(batch[0]), batch[1])
        self.log("val_loss", loss)
        return loss

    test_step = validation_step

    def predict_step(self, batch: Any, _: int) -> Any:
        return self.layers(batch[0])

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.5)


def net(**options: Any) -> Net:
    torch.manual_seed(0)
    return Net(**options)


def data() -> Any:
    numbers = torch.Generator().manual_seed(1)
    inputs = torch.randn(BATCHES * 4, 3, generator=numbers)
    return DataLoader(TensorDataset(inputs, inputs.argmax(dim=1) % 2), batch_size=4)


def callback(root: Path, **options: Any) -> smd.DebuggerCallback:
    settings = {"save_config": smd.SaveConfig(save_interval=1), "on_error": "raise"}
    return smd.DebuggerCallback(out_dir=root, **settings | options)


def trainer(*callbacks: Any, **options: Any) -> Any:
    settings = {
        "accelerator": "cpu",
        "max_epochs": 1,
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return Trainer(callbacks=list(callbacks), **settings | options)


def plain_gradients() -> list[Any]:
    """Return the gradients of the first weight in a loop without Lightning."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    found = []
    for inputs, labels in data():
        optimizer.zero_grad()
        model.criterion(model.layers(inputs), labels).backward()
        found.append(model.layers[0].weight.grad.clone())
        optimizer.step()
    return found


def test_all_phases_are_one_trial(tmp_path: Path) -> None:
    spy = callback(tmp_path, include_collections="weights")
    model, lightning = net(), trainer(spy, max_epochs=2)
    lightning.fit(model, data(), data())
    first = opened(tmp_path)
    assert (len(first.steps()), first.loaded_all_steps) == (4 * BATCHES, True)
    lightning.test(model, data(), verbose=False)
    lightning.predict(model, data())
    trial = opened(tmp_path)
    # The sanity check before the first epoch is no step.
    assert trial.steps(mode=TRAIN) == list(range(2 * BATCHES))
    assert trial.steps(mode=EVAL) == list(range(3 * BATCHES))
    assert trial.steps(mode=PREDICT) == list(range(BATCHES))
    assert (trial.steps(), trial.loaded_all_steps) == (list(range(6 * BATCHES)), True)
    assert [trial.mode(step) for step in (0, 3, 4, 7, 8)] == [TRAIN, TRAIN, EVAL, EVAL, TRAIN]


def test_names_and_collections(tmp_path: Path) -> None:
    names = ["gradients", "weights", "biases", "relu_output", "labels", "predictions"]
    trainer(callback(tmp_path, include_collections=names)).fit(net(), data())
    trial = opened(tmp_path)
    parameters = [f"Net_layers.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")]
    assert {name: sorted(trial.tensor_names(collection=name)) for name in [*names, "losses"]} == {
        "gradients": sorted(f"gradient/{name}" for name in parameters),
        "weights": [name for name in parameters if name.endswith("weight")],
        "biases": [name for name in parameters if name.endswith("bias")],
        "relu_output": ["layers.1_output_0"],
        "predictions": ["CrossEntropyLoss_input_0"],
        "labels": ["CrossEntropyLoss_input_1"],
        "losses": ["CrossEntropyLoss_output_0", "loss_output_0"],
    }


def test_values_are_those_of_the_training(tmp_path: Path) -> None:
    trainer(callback(tmp_path, include_collections="gradients")).fit(net(), data())
    trial = opened(tmp_path)
    for step, expected in enumerate(plain_gradients()):
        assert trial.tensor(WEIGHT).value(step).tolist() == expected.tolist()
        loss = trial.tensor("loss_output_0").value(step).tolist()
        assert loss == trial.tensor("CrossEntropyLoss_output_0").value(step).tolist()


def test_what_is_logged_is_saved_once(tmp_path: Path) -> None:
    trainer(callback(tmp_path), max_epochs=2).fit(net(), data(), data())
    trial = opened(tmp_path)
    seen = trial.tensor("scalar/seen_step")
    assert [(step, seen.value(step).item()) for step in seen.steps()] == [
        *zip([0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0], strict=True),
        *zip([8, 9, 10, 11], [0.0, 1.0, 2.0, 3.0], strict=True),
    ]
    assert {name: trial.tensor(name).steps() for name in trial.tensor_names(regex="^scalar")} == {
        "scalar/seen_epoch": [7, 15],
        "scalar/seen_step": [0, 1, 2, 3, 8, 9, 10, 11],
        "scalar/val_loss": [7, 15],
    }


def test_with_accumulation_every_batch_is_a_step(tmp_path: Path) -> None:
    spy = callback(tmp_path, include_collections="gradients")
    trainer(spy, accumulate_grad_batches=2).fit(net(), data())
    trial = opened(tmp_path)
    assert trial.tensor(WEIGHT).steps(mode=TRAIN) == list(range(BATCHES))
    # Lightning divides the loss by 2 before its backward.
    first = trial.tensor(WEIGHT).value(0)
    assert first.tolist() == (plain_gradients()[0] / 2).tolist()
    loss = trial.tensor("CrossEntropyLoss_output_0").value(0).tolist()
    assert trial.tensor("loss_output_0").value(0).tolist() == loss


def test_a_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    first = trainer(callback(tmp_path / "trial"))
    first.fit(net(), data(), data())
    path = tmp_path / "first.ckpt"
    first.save_checkpoint(path)
    # Three more steps are in the trial than the checkpoint knows of.
    more = callback(tmp_path / "trial", resume=True)
    trainer(more, limit_train_batches=3, limit_val_batches=0).fit(net(), data())
    again = callback(tmp_path / "trial", resume=True)
    trainer(again, max_epochs=2).fit(net(), data(), data(), ckpt_path=path)
    trial = opened(tmp_path / "trial")
    assert trial.steps() == list(range(4 * BATCHES))
    assert trial.steps(mode=TRAIN) == list(range(2 * BATCHES))
    assert again.state_dict()["global_step"] == 4 * BATCHES - 1
    # Only training takes up the counts.
    trainer(again).test(net(), data(), ckpt_path=path, verbose=False)
    assert opened(tmp_path / "trial").steps() == list(range(5 * BATCHES))


def test_an_error_of_the_training_ends_the_trial(tmp_path: Path) -> None:
    with pytest.raises(ArithmeticError, match="own error"):
        trainer(callback(tmp_path)).fit(net(fails_at=2), data())
    trial = opened(tmp_path)
    assert (trial.steps(), trial.loaded_all_steps) == ([0, 1], True)


def test_an_error_of_the_hook_leaves_the_training_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        msg = "No space left."
        raise OSError(msg)

    expected, model = net(), net()
    trainer().fit(expected, data(), data())
    spy = callback(tmp_path, save_all=True, on_error="disable")
    monkeypatch.setattr(TrialRecorder, "save", fail)
    trainer(spy).fit(model, data(), data())
    assert spy.hook is not None
    assert spy.hook.is_off
    found = model.state_dict()
    assert all(torch.equal(value, found[name]) for name, value in expected.state_dict().items())


def test_a_given_hook_is_left_open(tmp_path: Path) -> None:
    hook = smd.Hook(tmp_path, save_config=smd.SaveConfig(save_interval=1), on_error="raise")
    model, lightning = net(), trainer(smd.DebuggerCallback(hook))
    lightning.fit(model, data())
    lightning.test(model, data(), verbose=False)
    lightning.fit(model, data(), data())
    assert not hook.is_off
    hook.close()
    trial = opened(tmp_path)
    assert trial.steps(mode=TRAIN) == list(range(BATCHES))
    assert trial.steps(mode=EVAL) == list(range(BATCHES))
    assert sorted(trial.tensor_names(collection="losses")) == [
        "CrossEntropyLoss_output_0",
        "loss_output_0",
    ]


def test_a_folder_with_a_trial_is_refused_before_training(tmp_path: Path) -> None:
    trainer(callback(tmp_path)).fit(net(), data())
    with pytest.raises(SMDebugRuntimeError, match="holds the trial of a training job"):
        trainer(callback(tmp_path)).fit(net(), data())


def test_a_hook_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=r"got out_dir, save_all\. Give them to"):
        smd.DebuggerCallback(smd.Hook(tmp_path, dry_run=True), "runs", save_all=True)
    with pytest.raises(SMDebugTypeError, match=r"must be a smdebug\.pytorch\.Hook, got 'runs'\."):
        smd.DebuggerCallback("runs", out_dir="others")
    with pytest.raises(SMDebugTypeError, match=r"must be a smdebug\.pytorch\.Hook, got 7\."):
        smd.DebuggerCallback(7)  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("path_type", [str, Path])
def test_a_folder_is_enough(tmp_path: Path, path_type: type[str | Path]) -> None:
    watching = smd.DebuggerCallback(
        path_type(tmp_path / "x"), include_collections=["gradients"], on_error="raise"
    )
    trainer(watching, max_epochs=32).fit(net(), data())
    trial = opened(tmp_path / "x")
    assert trial.index.has_ended()
    assert trial.tensor("CrossEntropyLoss_output_0").steps() == [*range(100), 100, 110, 120]
    assert trial.tensor(WEIGHT).steps() == [*range(0, 128, 10)]


def test_a_save_config_selects_the_steps(tmp_path: Path) -> None:
    config = smd.SaveConfig(save_interval=3)
    trainer(smd.DebuggerCallback(tmp_path / "x", save_config=config)).fit(net(), data())
    assert opened(tmp_path / "x").steps() == [0, 3]


def test_the_phases_of_steps_are_profiled_one_after_the_other(tmp_path: Path) -> None:
    profiling = callback(tmp_path / "trial", profiler_config=profiler_config(tmp_path))
    trainer(profiling).fit(net(), data(), data())
    recorded = sorted(events(tmp_path), key=lambda event: event.start_time)
    phases = [event.event_phase for event in recorded]
    step = ["Step:ModeKeys.TRAIN", "Forward", "Backward(post-forward)", "Optimizer"]
    assert phases[: 4 * BATCHES] == step * BATCHES
    assert phases[4 * BATCHES :] == ["Step:ModeKeys.EVAL", "Forward"] * BATCHES
    for before, after in itertools.pairwise(recorded):
        if before.event_phase in step[1:]:
            assert before.end_time <= after.start_time
