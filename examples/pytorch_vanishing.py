"""Twelve layers of sigmoids: the gradients vanish on their way back. OUT_DIR is the trial."""

import sys

import torch
from torch import nn

import smdebug.pytorch as smd

torch.manual_seed(0)
layers = [part for _ in range(12) for part in (nn.Linear(16, 16), nn.Sigmoid())]
model = nn.Sequential(*layers, nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(256, 16)
targets = inputs.sum(dim=1, keepdim=True)

every_tenth = smd.SaveConfig(save_interval=10)
hook = smd.Hook(sys.argv[1], save_config=every_tenth, include_collections=["gradients"])
hook.register_module(model)
hook.register_loss(criterion)
for _ in range(100):
    optimizer.zero_grad()
    criterion(model(inputs), targets).backward()
    optimizer.step()
hook.close()
