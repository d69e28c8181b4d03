"""Healthy text classifiers with padding: news and reviews."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from training_runs import healthy
from transformers import DistilBertConfig, DistilBertForSequenceClassification

from runs_tuned.seventh_held_out.data_and_trees.shared.loops import loader, train, validation
from runs_tuned.seventh_held_out.data_and_trees.shared.networks import (
    MeanOfWords,
    Packed,
    TextCnn,
    TextEncoder,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.texts import (
    VOCABULARY,
    WORDS,
    news,
    news_texts,
    review_texts,
    reviews,
    together,
)

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd


def gathered(texts: list[Any], kinds: Any, size: int, tested: int, seed: int) -> tuple[Any, Any]:
    """Return batches to train with and to validate with, each as long as its longest text."""
    rows = list(zip(texts, kinds, strict=True))
    generator = torch.Generator().manual_seed(seed)
    return (
        DataLoader(
            rows[:-tested],
            size,
            shuffle=True,
            drop_last=True,
            collate_fn=together,
            generator=generator,
        ),
        DataLoader(rows[-tested:], 100, collate_fn=together),
    )


@healthy("news of four desks, convolutions over three to five words, dropout, Adam")
def news_by_convolutions(root: Path) -> int:
    torch.manual_seed(301)
    model, data = TextCnn(WORDS, 4), news(2400, 3001, told=0.4)
    return train(
        root,
        model,
        loader(data, 32, 301),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=4,
    )


@healthy("news of six desks, the mean of its words, AdamW, five epochs")
def news_by_the_mean(root: Path) -> int:
    torch.manual_seed(302)
    model, data = MeanOfWords(WORDS, 6), news(3000, 3002, desks=6, told=0.4)
    return train(
        root,
        model,
        loader(data, 50, 302),
        validation(data),
        torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.01),
        epochs=5,
        every=3,
    )


@healthy("reviews that complain, praise or ask, an LSTM over packed texts, clipped, Adam")
def reviews_packed(root: Path) -> int:
    torch.manual_seed(303)
    model, data = Packed(VOCABULARY, 3), reviews(2400, 3003)
    return train(
        root,
        model,
        loader(data, 40, 303),
        validation(data),
        torch.optim.Adam(model.parameters(), 5e-3),
        epochs=4,
        clip=1.0,
    )


@healthy("news of five desks by self-attention, warm-up, a line to zero, smoothed labels, AdamW")
def news_by_attention(root: Path) -> int:
    torch.manual_seed(304)
    model, data = TextEncoder(WORDS, 5), news(2800, 3004, desks=5, told=0.45)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.01)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 20, (201 - step) / 181)
    )
    return train(
        root,
        model,
        loader(data, 36, 304),
        validation(data),
        optimizer,
        epochs=3,
        loss=nn.CrossEntropyLoss(label_smoothing=0.05),
        per_step=rates,
        clip=1.0,
        every=4,
    )


class DistilBert(nn.Module):
    """A small DistilBERT with a head for kinds of texts: logits of rows of tokens."""

    def __init__(self, words: int, kinds: int) -> None:
        super().__init__()
        self.bert = DistilBertForSequenceClassification(
            DistilBertConfig(
                vocab_size=words,
                max_position_embeddings=40,
                n_layers=2,
                n_heads=4,
                dim=32,
                hidden_dim=64,
                num_labels=kinds,
                seq_classif_dropout=0.1,
            )
        )

    def forward(self, x: Any) -> Any:
        return self.bert(input_ids=x, attention_mask=(x > 0).long()).logits


@healthy("news of four desks, a small DistilBERT, batches as long as their longest text, AdamW")
def news_by_distilbert(root: Path) -> int:
    torch.manual_seed(305)
    model = DistilBert(WORDS, 4).train()
    texts, desk = news_texts(2400, 3005, told=0.6)
    batches, tests = gathered(texts, desk, 32, 400, 305)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 25, (187 - step) / 162)
    )
    return train(
        root, model, batches, tests, optimizer, epochs=3, per_step=rates, clip=1.0, every=4
    )


@healthy("reviews, a GRU over packed texts, batches as long as their longest, stopped on plateaus")
def reviews_by_gru(root: Path) -> int:
    torch.manual_seed(306)
    model = Packed(VOCABULARY, 3, nn.GRU, 28)
    texts, kind = review_texts(2600, 3006)
    batches, tests = gathered(texts, kind, 44, 400, 306)
    optimizer = torch.optim.NAdam(model.parameters(), 4e-3)
    return train(
        root,
        model,
        batches,
        tests,
        optimizer,
        epochs=6,
        per_epoch=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1),
        clip=2.0,
        patience=2,
        every=3,
    )


def by_length(texts: list[Any], size: int, seed: int) -> Iterator[list[int]]:
    """Yield shuffled batches of texts of like length, from pools of ten batches."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(texts), generator=generator).tolist()
    for at in range(0, len(order), 10 * size):
        pool = sorted(order[at : at + 10 * size], key=lambda row: len(texts[row]))
        parts = [pool[begin : begin + size] for begin in range(0, len(pool), size)]
        for number in torch.randperm(len(parts), generator=generator).tolist():
            yield parts[number]


class ByLength:
    """Batches of texts of like length, in another order in each epoch."""

    def __init__(self, texts: list[Any], kinds: Any, size: int, seed: int) -> None:
        self.texts, self.kinds, self.size, self.seed = texts, kinds, size, seed

    def __iter__(self) -> Iterator[Any]:
        self.seed += 1
        for rows in by_length(self.texts, self.size, self.seed):
            yield together([(self.texts[row], self.kinds[row]) for row in rows])


@healthy("news of four desks from 10 to 60 words, batches of like length, convolutions, Adam")
def news_of_like_length(root: Path) -> int:
    torch.manual_seed(307)
    texts, desk = news_texts(2400, 3007, shortest=10, longest=60, told=0.35)
    model, tests = TextCnn(WORDS, 4, 20), ByLength(texts[-400:], desk[-400:], 50, 3)
    return train(
        root,
        model,
        ByLength(texts[:-400], desk[:-400], 32, 307),
        tests,
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=3,
    )


@healthy("Keras, news of four desks, embeddings with a mask, their mean, dropout, Adam")
def news_by_keras(root: Path) -> int:
    torch.set_num_threads(1)
    keras.utils.set_random_seed(308)
    data, layers = news(2000, 3008), keras.layers
    model = keras.Sequential(
        [
            layers.Input((data.x.shape[1],), dtype="int32"),
            layers.Embedding(WORDS, 24, mask_zero=True),
            layers.GlobalAveragePooling1D(),
            layers.Dense(24, activation="relu"),
            layers.Dropout(0.3),
            layers.Dense(4),
        ]
    )
    model.compile(
        keras.optimizers.Adam(5e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    with smd.KerasHook(
        root,
        save_config=smd.SaveConfig(save_interval=5),
        include_collections=("weights", "biases", "gradients", "losses", "inputs"),
        include_regex="embedding/inputs",
        on_error="raise",
    ) as hook:
        model.fit(
            data.x.numpy(),
            data.y.numpy(),
            32,
            4,
            validation_data=(data.test_x.numpy(), data.test_y.numpy()),
            validation_batch_size=200,
            callbacks=[hook],
            verbose=0,
        )
    return 0
