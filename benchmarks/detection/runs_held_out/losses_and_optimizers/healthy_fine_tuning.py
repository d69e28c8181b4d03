"""Healthy trainings of models that learnt before, of restarted rates, and of tails of epochs."""

import tempfile
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.losses_and_optimizers.shared.data import (
    WORDS,
    beats,
    glyphs,
    opinions,
    species,
    subscribers,
)
from runs_held_out.losses_and_optimizers.shared.loop import (
    by,
    lambda_rate,
    linear,
    run,
    served,
)
from runs_held_out.losses_and_optimizers.shared.models import (
    conv1d,
    dense,
    resnet,
    taught,
)

healthy = training_runs.healthy


class _Classifier(nn.Module):
    """A DistilBERT of transformers that learnt masked words, with a new head."""

    def __init__(self, words: Any) -> None:
        super().__init__()
        import transformers

        config = transformers.DistilBertConfig(
            vocab_size=WORDS + 1,
            dim=32,
            hidden_dim=64,
            n_layers=2,
            n_heads=4,
            max_position_embeddings=20,
        )
        first = transformers.DistilBertForMaskedLM(config)
        masked = torch.rand(words.shape, generator=torch.Generator().manual_seed(8070)) < 0.15
        masked &= words > 0

        def loss(batch: Any) -> Any:
            x, hidden = batch
            seen = x.masked_fill(hidden, WORDS)
            logits = first(input_ids=seen, attention_mask=(x > 0).long()).logits
            return functional.cross_entropy(logits[hidden], x[hidden])

        first.train()
        taught(first, loss, served(words, masked, size=32, seed=8071), 80)
        with tempfile.TemporaryDirectory() as folder:
            first.save_pretrained(folder)
            kind = transformers.DistilBertForSequenceClassification
            self.model = kind.from_pretrained(folder, num_labels=2)
        self.train()

    def forward(self, x: Any) -> Any:
        return self.model(input_ids=x, attention_mask=(x > 0).long()).logits


@healthy("opinions by a DistilBERT that learnt masked words, AdamW, warm-up and a line down")
def opinions_by_distilbert(root: Path) -> int:
    torch.manual_seed(8060)
    words, _ = opinions(2000, 8061, 0.35)
    model = _Classifier(words)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01)
    return run(
        root,
        model,
        by(model),
        served(*opinions(1280, 8060, 0.35), size=32, seed=8060),
        optimizer,
        steps=120,
        schedule=lambda_rate(optimizer, linear(12, 122)),
        clip=1.0,
        test=opinions(300, 8062, 0.35),
        test_every=40,
    )


@healthy(
    "glyphs by a residual network that learnt clearer ones, batch norms keep their statistics, SGD "
    "with momentum"
)
def glyphs_with_frozen_norms(root: Path) -> int:
    torch.manual_seed(8064)
    model = resnet(8, 8)
    taught(model, by(model), served(*glyphs(1600, 8065, noise=0.7), size=32, seed=8065), 100)
    model[-1] = nn.Linear(32, 8)
    norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm2d)]
    for norm in norms:
        norm.requires_grad_(requires_grad=False)

    def to_train(_: int = 0) -> None:
        model.train()
        for norm in norms:
            norm.eval()

    to_train()
    rest = [each for each in model.parameters() if each.requires_grad]
    return run(
        root,
        model,
        by(model),
        served(*glyphs(960, 8064, noise=1.1), size=32, seed=8064),
        torch.optim.SGD(rest, 0.01, momentum=0.9),
        steps=150,
        every=2,
        test=glyphs(300, 8066, noise=1.1),
        test_every=30,
        to_train=to_train,
    )


@healthy("species of flowers by dense layers, Adam, a cosine that begins again (SGDR)")
def flowers_with_warm_restarts(root: Path) -> int:
    torch.manual_seed(8067)
    model = dense(9, 48, 48, 5, drop=0.1)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 50, 2)
    return run(
        root,
        model,
        by(model),
        served(*species(3000, 8067, spread=1.2), size=50, seed=8067),
        optimizer,
        steps=345,
        every=2,
        schedule=restarts,
        test=species(600, 8068, spread=1.2),
        test_every=30,
    )


@healthy("kinds of heartbeats, three batches to an update and what is left of an epoch, Adam")
def heartbeats_with_tails(root: Path) -> int:
    torch.manual_seed(8069)
    model = conv1d(4, drop=0.1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)

    def after(step: int) -> None:
        if (step % 32 + 1) % 3 == 0 or step % 32 == 31:
            optimizer.step()
            optimizer.zero_grad()

    return run(
        root,
        model,
        by(model),
        served(*beats(1024, 8069, noise=0.8), size=32, seed=8069),
        optimizer,
        steps=256,
        accumulate=3,
        after=after,
        update=lambda: None,
        clear=lambda: None,
        test=beats(300, 8073, noise=0.8),
        test_every=64,
    )


@healthy("which subscribers leave, batch norm, SGD, the rate falls linearly, every fourth step")
def subscribers_every_fourth_step(root: Path) -> int:
    torch.manual_seed(8074)
    model = dense(14, 48, 48, 1, norm=nn.BatchNorm1d, drop=0.2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-3)
    return run(
        root,
        model,
        by(model, functional.binary_cross_entropy_with_logits),
        served(*subscribers(2560, 8074), size=64, seed=8074),
        optimizer,
        steps=320,
        every=4,
        schedule=lambda_rate(optimizer, linear(0, 330)),
        test=subscribers(600, 8075),
        test_every=40,
    )
