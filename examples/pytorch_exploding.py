"""A learning rate that is far too large: weights explode, then nothing is a number any more."""

import sys

import torch
from torch import nn

import smdebug.pytorch as smd

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=10.0)
inputs = torch.randn(256, 8)
targets = inputs.sum(dim=1, keepdim=True)

every_step = smd.SaveConfig(save_interval=1)
hook = smd.Hook(sys.argv[1], save_config=every_step, include_collections=["weights", "gradients"])
hook.register_module(model)
for _ in range(50):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    hook.record_tensor_value("loss", loss)
    loss.backward()
    optimizer.step()
hook.close()
