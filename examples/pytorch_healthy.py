"""A small network learns to read handwritten digits, and all is well: OUT_DIR is its trial."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn

import smdebug.pytorch as smd

torch.manual_seed(0)
pixels, digits = load_digits(return_X_y=True)
images, labels = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

hook = smd.Hook(
    sys.argv[1],
    save_config=smd.SaveConfig(save_interval=10),
    include_collections=["weights", "gradients", "losses"],
)
hook.register_module(model)
hook.register_loss(criterion)
for _ in range(200):
    optimizer.zero_grad()
    criterion(model(images), labels).backward()
    optimizer.step()
hook.close()
