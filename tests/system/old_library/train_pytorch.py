"""Train one small seeded PyTorch model with hooks: smdebug 1.0.34's or ours, by the interpreter.

Usage: ``train_pytorch.py ROOT CASE...``. The trial of each case is a folder below ROOT. The two
hooks share every name that is used here.
"""

import os
import sys
from typing import Any

os.environ["SMDEBUG_LOG_LEVEL"] = "off"

import torch
from torch import nn

import smdebug.pytorch as smd

LABELS = torch.tensor([0, 1, 2, 0])
PHASES = (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.TRAIN)
STEPS = 3  # in each phase


class Block(nn.Module):
    """A layer and its activation."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.act = nn.Linear(8, 8), nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.fc(x))


class Net(nn.Module):
    """A convolution, an activation used twice, nested blocks and an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu = nn.Conv2d(1, 2, 3), nn.ReLU()
        self.blocks = nn.Sequential(Block(), Block())
        self.head, self.lstm = nn.Linear(8, 3), nn.LSTM(8, 8, batch_first=True)

    def forward(self, x: Any) -> Any:
        x = self.relu(self.conv(x)).mean(1).flatten(1)
        x, _ = self.lstm(x[:, None])
        return self.head(self.blocks(self.relu(x[:, 0])))


def made(case: str, root: str, net: Any) -> Any:
    """Return the hook of a case."""
    every = smd.SaveConfig(save_interval=1)
    if case == "everything":
        return smd.Hook(root, save_config=every, save_all=True)
    if case == "defaults":
        return smd.Hook(root, save_config=smd.SaveConfig(save_interval=2))
    if case == "collections":
        names = ["weights", "biases", "gradients", "mine"]
        hook = smd.Hook(root, save_config=every, include_collections=names)
        hook.get_collection("mine").add_module_tensors(net.head, inputs=True, outputs=True)
        biases = hook.get_collection("biases")
        # Without an interval, smdebug would save step 0 as well, and ours only these steps.
        biases.save_config = smd.SaveConfig(save_interval=500, save_steps=[1, 4])
        return hook
    config = smd.ReductionConfig(
        reductions=["min", "max", "mean", "std", "variance", "sum", "prod"],
        abs_reductions=["mean", "max"],
        norms=["l1", "l2"],
        abs_norms=["l2"],
    )
    return smd.Hook(
        root, save_config=every, include_regex=["^Net_", "relu"], reduction_config=config
    )


def train(case: str, root: str) -> None:
    """Train with the hook of a case."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net, loss = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    hook = made(case, root, net)
    hook.register_module(net)
    hook.register_loss(loss)
    for phase, mode in enumerate(PHASES):
        hook.set_mode(mode)
        for step in range(STEPS):
            x = torch.randn(4, 1, 6, 4, generator=torch.Generator().manual_seed(10 * phase + step))
            hook.save_scalar("before", phase + step)
            value = loss(net(x), LABELS)
            hook.record_tensor_value("nll_loss", value)
            if mode == smd.modes.TRAIN:
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
            hook.save_scalar("after", value.item())
            hook.save_tensor("own", torch.full((3,), float(step)), collections_to_write=["default"])
    hook.close()


if __name__ == "__main__":
    folder, *cases = sys.argv[1:]
    for one in cases:
        train(one, f"{folder}/{one}")
