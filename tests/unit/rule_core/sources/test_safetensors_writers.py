"""Files that the libraries write are read as they are, and those that they refuse are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors_files import checkpoint_index, whole_trial, with_header

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.safetensors_header import DTYPES, header_end, parse_header
from rule_core.storage.local import LocalStore
from rule_core.trials.trial import Trial

safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed.")


def read(root: Path) -> Trial:
    """Return the trial of a folder."""
    trial = whole_trial(checkpoint_index(LocalStore(root)))
    assert not trial.index.file_problems.problems
    return trial


_INFO = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "I64", "F99"]),
        "shape": st.lists(st.integers(0, 3), max_size=2),
        "data_offsets": st.lists(st.integers(0, 12), min_size=2, max_size=2),
    }
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from("ab"), _INFO, max_size=2), st.integers(0, 12))
def test_what_the_library_refuses_is_not_read_as_whole(infos: dict[str, Any], size: int) -> None:
    data = with_header(json.dumps(infos).encode(), bytes(size))
    try:
        expected = dict(safetensors.deserialize(data))
    except safetensors.SafetensorError:
        expected = None
    try:
        layout = parse_header(data[8 : header_end(data, len(data), "x")], len(data), "x")
        names = {} if layout.damaged else layout.names
        is_whole = not layout.damaged
    except (CorruptFileError, TruncatedFileError):
        names, is_whole = {}, False
    assert is_whole == (expected is not None)
    assert set(names) == set(expected or ())


def test_every_type_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed.")
    save_file = pytest.importorskip("safetensors.torch").save_file
    values = torch.arange(6.0).reshape(2, 3)
    tensors = {
        str(dtype): values.to(dtype)
        for dtype in (
            *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
            *(torch.float8_e4m3fn, torch.float8_e5m2),
            *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
        )
    }
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    trial = read(tmp_path)
    assert len(trial.tensor_names()) == len(tensors)
    for name, tensor in tensors.items():
        assert trial.tensor(name).value(0).tolist() == tensor.double().tolist()
        assert trial.tensor(name).reduction_value(0, "max") == (1 if "bool" in name else 5)


def test_a_sharded_model_of_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed.")
    config = transformers.GPT2Config(n_layer=2, n_embd=16, n_head=2, vocab_size=50, n_positions=8)
    model = transformers.GPT2LMHeadModel(config)
    for step in (5, 10):
        model.save_pretrained(tmp_path / f"checkpoint-{step}", max_shard_size="20KB")
    assert len([*(tmp_path / "checkpoint-5").glob("*.safetensors")]) > 1
    trial = read(tmp_path)
    state = model.state_dict()
    assert trial.steps() == [5, 10]
    assert set(trial.tensor_names()) == set(state) - {"lm_head.weight"}  # tied
    for name in trial.tensor_names():
        assert np.array_equal(trial.tensor(name).value(10), state[name].numpy())
    assert "transformer.h.0.ln_1.bias" in trial.tensor_names(collection="biases")
    assert "transformer.wte.weight" in trial.tensor_names(collection="weights")


def test_a_training_of_the_trainer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed.")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed.")
    pytest.importorskip("accelerate", reason="accelerate is not installed.")
    config = transformers.GPT2Config(n_layer=1, n_embd=8, n_head=1, vocab_size=20, n_positions=4)
    row = {"input_ids": torch.tensor([1, 2, 3]), "labels": torch.tensor([1, 2, 3])}
    arguments = transformers.TrainingArguments(
        tmp_path, max_steps=4, save_steps=1, save_total_limit=2, report_to=[], use_cpu=True
    )
    model = transformers.GPT2LMHeadModel(config)
    index = checkpoint_index(LocalStore(tmp_path))

    class Look(transformers.TrainerCallback):  # type: ignore[misc]
        def on_save(self, *_: Any, **__: Any) -> None:
            index.refresh()

    trainer = transformers.Trainer(model, arguments, train_dataset=[row] * 8, callbacks=[Look()])
    trainer.train()
    trainer.save_model()
    index.refresh()
    assert list(index.steps) == [1, 2, 3, 4]
    live, afterwards = whole_trial(index), read(tmp_path)
    assert afterwards.steps() == [3, 4]
    name = "transformer.wte.weight"
    assert live.tensor(name).steps() == [3, 4]
    for step in (3, 4):
        assert np.array_equal(live.tensor(name).value(step), afterwards.tensor(name).value(step))
    assert np.array_equal(afterwards.tensor(name).value(4), model.state_dict()[name].numpy())


def test_states_of_accelerate(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed.")
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed.")
    accelerator = accelerate.Accelerator(cpu=True)
    model = accelerator.prepare(torch.nn.Linear(30, 40))
    accelerator.save_state(tmp_path / "step_10")
    accelerator.save_model(model, tmp_path / "step_20", max_shard_size="2KB")
    trial = read(tmp_path)
    assert trial.steps() == [10, 20]
    for step in (10, 20):
        assert trial.tensor("weight").value(step).tolist() == model.weight.tolist()


def test_types_of_this_package_are_those_of_the_library() -> None:
    with pytest.raises(safetensors.SafetensorError) as raised:
        safetensors.deserialize(with_header(b'{"a":{"dtype":"X","shape":[],"data_offsets":[0,0]}}'))
    listed = set(str(raised.value).replace("`", " ").replace(",", " ").split())
    assert set(DTYPES) <= listed
