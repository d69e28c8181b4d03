"""What the callback for Hugging Face's `Trainer` saves, and that it never stands in its way."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers", reason="transformers is not installed.")

import torch
from hooked import opened
from recorded_profiles import events, profiler_config
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

import smdebug.transformers as smd
from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError
from rule_core.saving.trial_recorder import TrialRecorder

TRAIN, EVAL = smd.modes.TRAIN, smd.modes.EVAL
MODEL = "BertForSequenceClassification"
WEIGHT = "classifier.weight"
SIZES = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
BATCHES = 4


def model() -> Any:
    set_seed(0)
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(vocab_size=16, num_attention_heads=1, num_labels=2, **SIZES, **still)
    return BertForSequenceClassification(config)


def data(count: int = BATCHES * 4) -> Any:
    tokens = torch.randint(0, 16, (count, 6), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": one, "labels": one.sum() % 2} for one in tokens]


def callback(root: Path, **options: Any) -> smd.DebuggerCallback:
    settings = {"save_config": smd.SaveConfig(save_interval=1), "on_error": "raise"}
    return smd.DebuggerCallback(out_dir=root, **settings | options)


def trainer(root: Path, *callbacks: Any, trained: Any = None, **options: Any) -> Any:
    settings = {
        "per_device_train_batch_size": 4,
        "per_device_eval_batch_size": 4,
        "num_train_epochs": 1,
        "use_cpu": True,
        "disable_tqdm": True,
        "report_to": "none",
        "save_strategy": "no",
        "dataloader_pin_memory": False,
        "logging_steps": 2,
    }
    return Trainer(
        trained or model(),
        TrainingArguments(str(root / "output"), **settings | options),
        train_dataset=data(),
        eval_dataset=data(8),
        callbacks=list(callbacks),
    )


def test_names_and_collections(tmp_path: Path) -> None:
    names = ["gradients", "input_sequence", "labels", "predictions", "tanh_output"]
    trainer(tmp_path, callback(tmp_path / "trial", include_collections=names)).train()
    trial = opened(tmp_path / "trial")
    assert (trial.steps(mode=TRAIN), trial.loaded_all_steps) == (list(range(BATCHES)), True)
    found = {name: trial.tensor_names(collection=name) for name in [*names[1:], "losses"]}
    assert found == {
        "input_sequence": [f"{MODEL}_input_input_ids"],
        "labels": [f"{MODEL}_input_labels"],
        "predictions": [f"{MODEL}_output_logits"],
        "tanh_output": ["bert.pooler.activation_output_0"],
        "losses": [f"{MODEL}_output_loss"],
    }
    parameters = {name for name, _ in model().named_parameters()}
    assert set(trial.tensor_names(collection="gradients")) == {
        f"gradient/{MODEL}_{name}" for name in parameters
    }


def test_values_are_those_of_the_training(tmp_path: Path) -> None:
    seen: list[Any] = []
    trained = model()
    trained.classifier.weight.register_hook(lambda gradient: seen.append(gradient.clone()))
    spy = callback(tmp_path / "trial", include_collections=["gradients", "weights"])
    trainer(tmp_path, spy, trained=trained).train()
    trial = opened(tmp_path / "trial")
    gradients = trial.tensor(f"gradient/{MODEL}_{WEIGHT}")
    assert [gradients.value(step).tolist() for step in range(BATCHES)] == [
        one.tolist() for one in seen
    ]
    first = trial.tensor(f"{MODEL}_{WEIGHT}").value(0).tolist()
    assert first == model().classifier.weight.tolist()


def test_evaluation_between_steps_is_its_own_mode(tmp_path: Path) -> None:
    between = {"eval_strategy": "steps", "eval_steps": 2}
    trainer(tmp_path, callback(tmp_path / "trial"), **between).train()
    trial = opened(tmp_path / "trial")
    modes = {
        mode: [step for step in trial.steps() if trial.mode(step) == mode] for mode in (TRAIN, EVAL)
    }
    assert modes == {TRAIN: [0, 1, 4, 5], EVAL: [2, 3, 6, 7]}
    scalars = ("loss", "eval_loss", "train_loss")
    assert [trial.tensor(f"scalar/{name}").steps() for name in scalars] == [[1, 5], [3, 7], [7]]


def test_with_accumulation_every_forward_is_a_step(tmp_path: Path) -> None:
    spy = callback(tmp_path / "trial", include_collections="gradients")
    run = trainer(tmp_path, spy, gradient_accumulation_steps=2)
    run.train()
    trial = opened(tmp_path / "trial")
    assert run.state.global_step == BATCHES // 2
    assert trial.tensor(f"gradient/{MODEL}_{WEIGHT}").steps() == list(range(BATCHES))


def test_a_training_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    saving = {"save_strategy": "steps", "save_steps": 2, "eval_strategy": "steps", "eval_steps": 2}
    trainer(tmp_path, callback(tmp_path / "trial"), **saving).train()
    again = callback(tmp_path / "trial", resume=True)
    run = trainer(tmp_path, again, num_train_epochs=2, **saving)
    run.train(resume_from_checkpoint=str(tmp_path / "output" / "checkpoint-2"))
    trial = opened(tmp_path / "trial")
    # Four batches of training and of evaluation each were saved before, and as many now.
    assert trial.steps(mode=TRAIN) == list(range(2 * BATCHES))
    assert trial.steps(mode=EVAL) == list(range(2 * BATCHES))
    assert again.hook is not None
    assert again.hook.state_dict()["global_step"] == trial.steps()[-1] == 4 * BATCHES - 1


def test_training_again_goes_on_with_the_trial(tmp_path: Path) -> None:
    run = trainer(tmp_path, callback(tmp_path / "trial"))
    run.train()
    run.train()
    trial = opened(tmp_path / "trial")
    assert (trial.steps(mode=TRAIN), trial.loaded_all_steps) == (list(range(2 * BATCHES)), True)
    assert trial.tensor_names(collection="losses") == [f"{MODEL}_output_loss"]


def test_a_given_hook_is_left_open(tmp_path: Path) -> None:
    every = smd.SaveConfig(save_interval=1)
    hook = smd.Hook(tmp_path / "trial", save_config=every, on_error="raise")
    run = trainer(tmp_path, smd.DebuggerCallback(hook))
    run.train()
    run.evaluate()
    assert not hook.is_off
    hook.close()
    trial = opened(tmp_path / "trial")
    assert (len(trial.steps(mode=TRAIN)), len(trial.steps(mode=EVAL))) == (BATCHES, 2)


def test_the_model_is_left_as_it_was(tmp_path: Path) -> None:
    trained = model()
    trainer(tmp_path, callback(tmp_path / "trial"), trained=trained).train()
    left = [len(one._forward_pre_hooks) + len(one._forward_hooks) for one in trained.modules()]
    assert sum(left) == 0


def test_an_error_of_the_hook_leaves_the_training_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        msg = "No space left."
        raise OSError(msg)

    expected, trained = model(), model()
    trainer(tmp_path, trained=expected).train()
    monkeypatch.setattr(TrialRecorder, "save", fail)
    spy = callback(tmp_path / "trial", save_all=True, on_error="disable")
    trainer(tmp_path, spy, trained=trained).train()
    assert spy.hook is not None
    assert spy.hook.is_off
    found = trained.state_dict()
    assert all(torch.equal(value, found[name]) for name, value in expected.state_dict().items())


def test_a_folder_with_a_trial_is_refused_before_training(tmp_path: Path) -> None:
    trainer(tmp_path, callback(tmp_path / "trial")).train()
    with pytest.raises(SMDebugRuntimeError, match="holds the trial of a training job"):
        trainer(tmp_path, callback(tmp_path / "trial")).train()


def test_a_hook_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="has its options already, got save_all"):
        smd.DebuggerCallback(smd.Hook(tmp_path, dry_run=True), save_all=True)


def test_the_phases_of_steps_are_profiled(tmp_path: Path) -> None:
    metrics = {"DataloaderProfilingConfig": {"StartStep": 0, "NumSteps": BATCHES}}
    config = profiler_config(tmp_path, **metrics)
    trainer(tmp_path, callback(tmp_path / "trial", profiler_config=config)).train()
    assert Counter(event.event_phase for event in events(tmp_path)) == {
        "Step:ModeKeys.TRAIN": BATCHES,
        "Forward": BATCHES,
        "Backward(post-forward)": BATCHES,
        "Optimizer": BATCHES,
        "DataLoaderIter": BATCHES,
        "DataLoaderIterInitialize": 1,
    }


def test_a_folder_is_enough(tmp_path: Path) -> None:
    watching = smd.DebuggerCallback(tmp_path / "x", on_error="raise")
    trainer(tmp_path, watching, num_train_epochs=28).train()
    trial = opened(tmp_path / "x")
    assert trial.index.has_ended()
    assert trial.tensor(f"{MODEL}_output_loss").steps() == [*range(100), 100, 110]
