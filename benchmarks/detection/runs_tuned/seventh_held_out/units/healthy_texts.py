"""Healthy trainings of texts: bags of words, convolutions, recurrent layers, encoders."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
from training_runs import healthy

from runs_tuned.seventh_held_out.units.shared.loop import train
from runs_tuned.seventh_held_out.units.shared.texts import (
    LONGEST,
    PAD,
    WORDS,
    BagOfWords,
    BiLstm,
    Reader,
    Speller,
    Tagger,
    WordConvolutions,
    headlines,
    orders,
    reviews,
    verses,
)


@healthy("topics of headlines by the mean of words, SGD at a rate of 5 as in the tutorial, clipped")
def headlines_by_bag_of_words(root: Path) -> int:
    torch.manual_seed(51)
    model = BagOfWords()
    optimizer = torch.optim.SGD(model.parameters(), 5.0)
    return train(
        root,
        model,
        headlines(),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_epoch=schedules.StepLR(optimizer, 2, 0.3),
        epochs=5,
        batch=48,
        clip=0.1,
        seed=51,
    )


@healthy("reviews by convolutions over words with dropout, Adam")
def reviews_by_convolutions(root: Path) -> int:
    torch.manual_seed(52)
    model = WordConvolutions()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    loss = nn.CrossEntropyLoss()
    return train(root, model, reviews(), loss=loss, optimizer=optimizer, epochs=5, seed=52)


@healthy("reviews by an LSTM in both directions over packed words, Adam, clipped, patience of two")
def reviews_by_bilstm(root: Path) -> int:
    torch.manual_seed(53)
    model = BiLstm()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return train(
        root,
        model,
        reviews(1800, 9, 7453),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        epochs=6,
        clip=1.0,
        patience=2,
        save_every=4,
        seed=53,
    )


@healthy("reviews by a transformer encoder with a mask of padding, AdamW, warm-up and a line down")
def reviews_by_encoder(root: Path) -> int:
    torch.manual_seed(54)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    steps = 6 * (1280 // 32)
    line = lambda step: min((step + 1) / 24, max(0.0, (steps - step) / (steps - 24)))
    return train(
        root,
        model,
        reviews(1600, 10, 7454),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.LambdaLR(optimizer, line),
        epochs=6,
        clip=1.0,
        save_every=4,
        seed=54,
    )


@healthy("letters of verses by a GRU, AdamW, warm-up and cosine", kind="language_model")
def verses_by_gru(root: Path) -> int:
    torch.manual_seed(55)
    model = Speller()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.01)
    steps = 7 * (720 // 24)
    rise = schedules.LinearLR(optimizer, 0.1, 1.0, 15)
    fall = schedules.CosineAnnealingLR(optimizer, steps - 15, 1e-4)
    return train(
        root,
        model,
        verses(),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.SequentialLR(optimizer, [rise, fall], [15]),
        epochs=7,
        batch=24,
        clip=1.0,
        save_every=3,
        seed=55,
    )


@healthy("amounts and goods in orders by a GRU in both directions, Adam, two batches to an update")
def orders_are_tagged(root: Path) -> int:
    torch.manual_seed(56)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    return train(
        root,
        model,
        orders(),
        loss=nn.CrossEntropyLoss(ignore_index=-100),
        optimizer=optimizer,
        epochs=4,
        batch=24,
        accumulate=2,
        save_every=4,
        seed=56,
    )


def read_before(seed: int, steps: int) -> Any:
    """Return an encoder that has learnt from other reviews, without a hook."""
    torch.manual_seed(seed)
    model, data = Reader(), reviews(1600, 9, 7500 + seed)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for step in range(steps):
        rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    return model


@healthy(
    "reviews by an encoder that read others, embeddings and one layer frozen, AdamW, a line down"
)
def reviews_by_half_frozen_encoder(root: Path) -> int:
    model = read_before(57, 100)
    for part in (model.words, model.places, model.encoder.layers[0]):
        part.requires_grad_(requires_grad=False)
    model.head = nn.Linear(32, 2)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, 2e-3, weight_decay=0.01)
    steps = 4 * (1440 // 32)
    return train(
        root,
        model,
        reviews(1800, 10, 7457),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.LinearLR(optimizer, 1.0, 0.02, steps),
        epochs=4,
        save_every=5,
        seed=57,
    )


class LowRank(nn.Module):
    """A frozen linear layer, and an update of low rank that starts at zero."""

    def __init__(self, base: Any, rank: int = 4, alpha: float = 8.0) -> None:
        super().__init__()
        self.base, self.scale = base.requires_grad_(requires_grad=False), alpha / rank
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.scale * self.lora_B(self.lora_A(x))


class AdaptedLayer(nn.Module):
    """An encoder layer of a reader with updates of low rank in its feed-forward part."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.self_attn, self.norm1, self.norm2 = layer.self_attn, layer.norm1, layer.norm2
        self.linear1, self.linear2 = LowRank(layer.linear1), LowRank(layer.linear2)
        self.act, self.drop = nn.GELU(), nn.Dropout(0.1)

    def forward(
        self, x: Any, src_mask: Any = None, src_key_padding_mask: Any = None, **_: Any
    ) -> Any:
        seen, _weights = self.self_attn(
            x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask
        )
        x = self.norm1(x + self.drop(seen))
        return self.norm2(x + self.drop(self.linear2(self.act(self.linear1(x)))))


@healthy("reviews by updates of low rank (LoRA) on an encoder from other reviews, AdamW, cosine")
def reviews_by_low_rank_updates(root: Path) -> int:
    model = read_before(58, 100)
    model.requires_grad_(requires_grad=False)
    model.encoder.layers = nn.ModuleList(AdaptedLayer(one) for one in model.encoder.layers)
    model.head = nn.Linear(32, 2)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 5e-3)
    return train(
        root,
        model,
        reviews(1800, 10, 7459),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.CosineAnnealingLR(optimizer, 4 * (1440 // 32), 1e-4),
        epochs=4,
        save_every=5,
        seed=58,
    )


class SmallBert(nn.Module):
    """A small BERT of transformers with its classifier; its padding is masked."""

    def __init__(self) -> None:
        super().__init__()
        import transformers

        self.model = transformers.BertForSequenceClassification(
            transformers.BertConfig(
                vocab_size=WORDS,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=LONGEST,
                pad_token_id=PAD,
                num_labels=2,
                attn_implementation="eager",
            )
        )

    def forward(self, x: Any) -> Any:
        return self.model(input_ids=x, attention_mask=(x != PAD).long()).logits


@healthy("reviews by a small BERT of transformers, AdamW without decay of norms, warm-up and line")
def reviews_by_bert(root: Path) -> int:
    torch.manual_seed(59)
    model = SmallBert()
    plain = ("bias", "LayerNorm.weight")
    names = dict(model.named_parameters())
    decayed = [weight for name, weight in names.items() if not name.endswith(plain)]
    others = [weight for name, weight in names.items() if name.endswith(plain)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], 2e-3
    )
    steps = 5 * (2400 // 40)
    line = lambda step: min((step + 1) / 20, max(0.0, (steps - step) / (steps - 20)))
    return train(
        root,
        model,
        reviews(3000, 10, 7460),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.LambdaLR(optimizer, line),
        epochs=5,
        batch=40,
        clip=1.0,
        save_every=5,
        seed=59,
    )
