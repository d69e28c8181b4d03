"""What a preset saves of trainings by others' loops: DDP, FSDP, Trainer, Lightning, accelerate."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

import smdebug.pytorch as smd
from smdebug.trials import Trial, create_trial

HERE = Path(__file__).parents[3]
SUPPORT = HERE / "tests" / "support"
ALWAYS = smd.SaveConfig(save_interval=1)
BATCHES = 3

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.. is deprecated"),
]


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def norms_of_workers(root: Path, manner: str, saving: str) -> list[float]:
    """Train with two workers; return the norms of the gradients."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    env = {**os.environ, "PYTHONPATH": str(HERE), "MASTER_ADDR": "127.0.0.1"}
    env |= {"MASTER_PORT": port, "WORLD_SIZE": "2"}
    command = [sys.executable, str(SUPPORT / "preset_workers.py"), manner, saving, str(root)]
    workers = [
        subprocess.Popen(
            command,
            env=env | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [worker.communicate(timeout=100) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    norms: list[float] = json.loads(outputs[0][0].splitlines()[-1])
    return norms


@pytest.mark.parametrize(
    ("manner", "saving"),
    [
        ("ddp", "all"),
        *(
            pytest.param("fsdp", saving, marks=pytest.mark.nightly)
            for saving in ("all", "one", "alone", "closing", "failing")
        ),
    ],
)
def test_norm_of_all_workers(tmp_path: Path, manner: str, saving: str) -> None:
    """No worker waits for another, whether that has a hook or not."""
    norms = norms_of_workers(tmp_path / "trial", manner, saving)
    tensor = create_trial(tmp_path / "trial").tensor("optimizer/grad_norm")
    saved = [float(tensor.value(step, worker="worker_0")) for step in (0, 1, 2)]
    assert saved == pytest.approx(norms, rel=1e-4)


def check(trial: Trial, *, steps: int, attention: bool = True) -> None:
    """Check that the optimizer, the batches and the attention are in a trial."""
    for name in ("optimizer/lr/0", "optimizer/grad_norm", "model/training_mode"):
        assert len(trial.tensor(name).steps()) >= steps, name
    assert trial.tensor_names(regex="optimizer/update_norm")
    assert len(trial.tensor("fingerprints/inputs").steps()) >= steps
    assert bool(trial.tensor_names(collection="attention")) == attention


def bert() -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed.")
    transformers.set_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = transformers.BertConfig(vocab_size=16, num_attention_heads=2, num_labels=2, **sizes)
    return transformers.BertForSequenceClassification(config)


def rows() -> list[dict[str, Any]]:
    tokens = torch.randint(0, 16, (BATCHES * 2, 6), generator=torch.Generator().manual_seed(1))
    return [{"input_ids": row, "labels": row.sum() % 2} for row in tokens]


def test_trainer_of_transformers(tmp_path: Path) -> None:
    model = bert()
    from transformers import Trainer, TrainingArguments

    from smdebug.transformers import DebuggerCallback

    arguments = TrainingArguments(
        str(tmp_path / "out"),
        per_device_train_batch_size=2,
        num_train_epochs=1,
        max_grad_norm=0.01,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    callback = DebuggerCallback(
        out_dir=tmp_path / "trial", preset="llm", save_config=ALWAYS, on_error="raise"
    )
    Trainer(model, arguments, train_dataset=rows(), callbacks=[callback]).train()
    trial = create_trial(tmp_path / "trial")
    check(trial, steps=BATCHES)
    clipped = trial.tensor("optimizer/grad_norm_clipped")
    assert float(clipped.value(0)) == pytest.approx(0.01, rel=1e-3)
    assert float(trial.tensor("optimizer/grad_norm").value(0)) > 0.015
    assert len(trial.tensor("fingerprints/labels").value(0)) == 2


@pytest.mark.nightly
def test_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="lightning is not installed.")
    from lightning import LightningModule, Trainer
    from torch.utils.data import DataLoader, TensorDataset

    from smdebug.lightning import DebuggerCallback

    class Net(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

        def training_step(self, batch: Any, _: int) -> Any:
            return (self.layer(batch[0]).mean((1, 2)) - batch[1]).square().mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.5)

    torch.manual_seed(0)
    data = TensorDataset(torch.randn(2 * BATCHES, 3, 4), torch.randn(2 * BATCHES))
    callback = DebuggerCallback(
        out_dir=tmp_path / "trial", preset="llm", save_config=ALWAYS, on_error="raise"
    )
    Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=0.125,
        callbacks=[callback],
    ).fit(Net(), DataLoader(data, batch_size=2))
    trial = create_trial(tmp_path / "trial")
    check(trial, steps=BATCHES)
    assert len(trial.tensor("fingerprints/labels").value(0)) == 2
    clipped = trial.tensor("optimizer/grad_norm_clipped")
    assert float(clipped.value(0)) == pytest.approx(0.125, rel=1e-3)


@pytest.mark.nightly
def test_accelerate_with_accumulation(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed.")
    model = bert()
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    loader = torch.utils.data.DataLoader(rows() * 2, batch_size=2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with smd.Hook(tmp_path / "trial", preset="llm", save_config=ALWAYS, on_error="raise") as hook:
        hook.register_module(model)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch).loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.01)
                optimizer.step()
                optimizer.zero_grad()
    trial = create_trial(tmp_path / "trial")
    check(trial, steps=0)
    assert trial.tensor("optimizer/grad_norm").steps() == [1, 3, 5]
    clipped = trial.tensor("optimizer/grad_norm_clipped")
    assert float(clipped.value(1)) == pytest.approx(0.01, rel=1e-3)
