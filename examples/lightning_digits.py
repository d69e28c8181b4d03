"""Lightning trains a classifier of handwritten digits; the callback saves it to OUT_DIR."""

import sys

import torch
from lightning import LightningModule, Trainer, seed_everything
from sklearn.datasets import load_digits

import smdebug.lightning as smd


class Digits(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = torch.nn.Linear(64, 10)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


seed_everything(0)
x, y = map(torch.tensor, load_digits(return_X_y=True))
batches = torch.utils.data.DataLoader(list(zip(x.float() / 16, y, strict=True)), batch_size=600)
hook = smd.Hook(sys.argv[1], save_all=True, save_config=smd.SaveConfig(save_interval=5))
options = {"max_epochs": 40, "logger": False, "enable_checkpointing": False}
Trainer(callbacks=[smd.DebuggerCallback(hook)], **options).fit(Digits(), batches)
