"""Runs of Trainer and of DDP on two processes under `train`: healthy, and broken on purpose."""

import sys
from pathlib import Path

import pytest
import saved
import training_scripts

pytest.importorskip("torch", reason="torch is not installed.")
TRAINER = """
import copy
import sys
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

fault = sys.argv[1]
set_seed(0)
model = GPT2LMHeadModel(
    GPT2Config(vocab_size=16, n_positions=16, n_embd=32, n_layer=2, n_head=2, eos_token_id=0)
)
successors = torch.randint(0, 16, (16, 2))


def row(index):
    generator = torch.Generator().manual_seed(index)
    tokens = [index % 16]
    for choice in torch.randint(0, 2, (15,), generator=generator).tolist():
        tokens.append(successors[tokens[-1], choice])
    tokens = torch.tensor(tokens)
    if fault == "shifted":
        return {"input_ids": tokens[:-1], "labels": tokens[1:]}
    return {"input_ids": tokens, "labels": tokens}


def give_nan(module, inputs, output):
    calls.append(len(calls))
    return output * float("nan") if len(calls) > 20 else output


calls = []
if fault == "nan":
    model.transformer.h[1].mlp.register_forward_hook(give_nan)


class Rows(list):
    def __getitem__(self, index):
        fetched.append(index)
        return super().__getitem__(0 if fault == "stuck-loader" and len(fetched) > 80 else index)


fetched = []
rows = Rows(row(index) for index in range(4 * 60))
arguments = TrainingArguments(
    "checkpoints",
    per_device_train_batch_size=4,
    num_train_epochs=1,
    learning_rate=30.0 if fault == "rate" else 5e-3,
    use_cpu=True,
    report_to="none",
    save_strategy="no",
    disable_tqdm=True,
    dataloader_pin_memory=False,
)
optimizer = torch.optim.AdamW(model.parameters(), arguments.learning_rate)
steps = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step // 1000)
chosen = (optimizer, steps) if fault == "schedule" else (None, None)
if fault == "copied":
    model, chosen = copy.deepcopy(model), (optimizer, None)
Trainer(model, arguments, train_dataset=rows, optimizers=chosen).train()
"""
DDP = """
import contextlib
import sys
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

fault = sys.argv[1]
torch.set_num_threads(1)
distributed.init_process_group("gloo")
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 32)
        self.second = nn.Linear(32, 32)
        self.last = nn.Linear(32, 4)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        if fault == "detached":
            hidden = hidden.detach()
        return self.last(torch.relu(self.second(hidden)))


model = DistributedDataParallel(Net(), find_unused_parameters=fault == "detached")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
truth = torch.randn(10, 4)
torch.manual_seed(1 + distributed.get_rank())
for step in range(60):
    x = torch.randn(32, 10)
    if fault != "no-zero-grad":
        optimizer.zero_grad()
    alone = fault == "no-sync" and step >= 30
    with model.no_sync() if alone else contextlib.nullcontext():
        criterion(model(x), (x @ truth).argmax(1)).backward()
    optimizer.step()
distributed.destroy_process_group()
"""
LAUNCH = {
    "trainer": [],
    "ddp": ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"],
}
# The rule that names each fault, and the tensor that it names, in part, if it names one.
FAULTS = {
    ("trainer", "rate"): ("LossNotDecreasing", "loss"),
    ("trainer", "nan"): ("ExplodingTensor", "transformer.h.1.mlp"),
    ("trainer", "schedule"): ("LearningRate", "optimizer/lr/0"),
    ("trainer", "stuck-loader"): ("RepeatedBatches", ""),
    ("trainer", "shifted"): ("MaskedOrShiftedLabels", "targets/tokens_after_next"),
    ("trainer", "copied"): ("ParametersWithoutOptimizer", "optimizer/not_held/GPT2LMHeadModel"),
    ("ddp", "no-zero-grad"): ("GradientAccumulates", ""),
    ("ddp", "no-sync"): ("ReplicaDivergence", "weight"),
    ("ddp", "detached"): ("StalledParameters", "first"),
}

QUICK = {("trainer", "nan"), ("ddp", "no-sync")}  # the others are judged each night


def findings(folder: Path, loop: str, fault: str) -> dict[str, set[str]]:
    """Train; return the tensors of all findings, by rule."""
    if loop == "trainer":
        pytest.importorskip("transformers", reason="transformers is not installed.")
    (folder / "script.py").write_text(TRAINER if loop == "trainer" else DDP)
    options = ["--output", "out", "--preset", "llm", "--save-interval", "1", "--keep-going"]
    options += ["--collections", "losses,gradients,weights,targets", "--no-report"]
    script = [sys.executable, *LAUNCH[loop], "script.py", fault]
    done = training_scripts.train(folder, options, script)
    assert done.returncode == 0, done.stderr
    tensors = {}
    for result in saved.results(folder / "out" / "results").values():
        if result["outcome"] == "IssuesFound":
            assert result["severity"] in ("error", "warning")
            tensors[result["rule"]] = {str(item["tensor"]) for item in result["evidence"]}
    return tensors


@pytest.mark.nightly
@pytest.mark.parametrize("loop", LAUNCH)
def test_healthy_training_has_no_finding(tmp_path: Path, loop: str) -> None:
    assert findings(tmp_path, loop, "none") == {}


@pytest.mark.parametrize(
    ("loop", "fault"),
    [pytest.param(*fault, marks=[] if fault in QUICK else pytest.mark.nightly) for fault in FAULTS],
)
def test_fault_is_named(tmp_path: Path, loop: str, fault: str) -> None:
    rule, part = FAULTS[loop, fault]
    tensors = findings(tmp_path, loop, fault)
    assert any(part in tensor for tensor in tensors.get(rule, ())), tensors
