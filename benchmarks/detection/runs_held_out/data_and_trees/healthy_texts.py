"""Healthy text classifiers: tickets of several queues, articles with tags."""

import os
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader
from training_runs import healthy
from transformers import BertConfig, BertForSequenceClassification

from runs_held_out.data_and_trees.shared.loops import (
    adamw,
    held_back,
    learn,
    shuffled,
    warm_then_line,
)
from runs_held_out.data_and_trees.shared.networks import (
    BagOfWords,
    Encoder,
    HuggingFace,
    Recurrent,
    WordCnn,
)
from runs_held_out.data_and_trees.shared.texts import (
    VOCABULARY,
    articles,
    batched,
    filled,
    ticket_data,
    tickets,
)

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd


def in_batches(texts: Any, kinds: Any, size: int, tested: int, seed: int) -> tuple[Any, Any]:
    """Return batches to train with and to validate with, each as long as its longest text."""
    rows = list(zip(texts, kinds, strict=True))
    generator = torch.Generator().manual_seed(seed)
    chosen = {"shuffle": True, "drop_last": True, "generator": generator}
    return (
        DataLoader(rows[:-tested], size, collate_fn=batched, **chosen),
        DataLoader(rows[-tested:], 100, collate_fn=batched),
    )


@healthy("tickets of five queues, the mean of their words, dropout, Adam, five epochs")
def tickets_by_their_mean(root: Path) -> int:
    torch.manual_seed(821)
    model, data = BagOfWords(VOCABULARY, 5), ticket_data(3000, 8021, told=0.45)
    return learn(
        root,
        model,
        shuffled(data, 50, 821),
        held_back(data),
        torch.optim.Adam(model.parameters(), 5e-3),
        epochs=5,
    )


@healthy("tickets of 8 to 30 words by a GRU in both directions, batches as long as their longest")
def tickets_by_gru(root: Path) -> int:
    torch.manual_seed(822)
    texts, queue = tickets(2200, 8022, told=0.45, shortest=8, longest=30)
    model = Recurrent(VOCABULARY, 5)
    return learn(
        root,
        model,
        *in_batches(texts, queue, 40, 300, 822),
        torch.optim.Adam(model.parameters(), 4e-3),
        epochs=4,
        clip=1.0,
        save_every=3,
    )


@healthy("tickets, convolutions along the words with batch norm, AdamW, a cosine to nothing")
def tickets_by_word_convolutions(root: Path) -> int:
    torch.manual_seed(823)
    model, data = WordCnn(VOCABULARY, 5), ticket_data(2400, 8023, told=0.45)
    optimizer = adamw(model, 3e-3)
    return learn(
        root,
        model,
        shuffled(data, 40, 823),
        held_back(data),
        optimizer,
        epochs=4,
        each_step=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200),
        save_every=3,
    )


@healthy("tickets by self-attention, AdamW, warm-up and a line, dropout, clipped, smoothed labels")
def tickets_by_encoder(root: Path) -> int:
    torch.manual_seed(824)
    model, data = Encoder(VOCABULARY, 5, 24), ticket_data(2400, 8024, told=0.5)
    optimizer = adamw(model, 2e-3)
    return learn(
        root,
        model,
        shuffled(data, 40, 824),
        held_back(data),
        optimizer,
        epochs=5,
        loss=nn.CrossEntropyLoss(label_smoothing=0.05),
        each_step=warm_then_line(optimizer, 25, 250),
        clip=1.0,
        save_every=4,
    )


@healthy("articles with some of six tags, the mean of words, a sigmoid loss for each tag, Adam")
def tags_of_articles(root: Path) -> int:
    torch.manual_seed(825)
    model, data = BagOfWords(VOCABULARY, 6, 48), articles(3000, 8025)
    return learn(
        root,
        model,
        shuffled(data, 40, 825),
        held_back(data),
        torch.optim.Adam(model.parameters(), 8e-3),
        epochs=5,
        loss=nn.BCEWithLogitsLoss(),
        save_every=3,
    )


@healthy(
    "a small BERT that knows tickets is tuned to those of another firm, padded by batch, AdamW"
)
def tickets_by_tuned_bert(root: Path) -> int:
    torch.manual_seed(826)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=40,
        num_labels=4,
    )
    model = HuggingFace(BertForSequenceClassification(config))
    before = ticket_data(2000, 8036, queues=4, told=0.5, tested=100)
    optimizer = adamw(model, 2e-3)
    for _ in range(4):
        for x, y in shuffled(before, 40, 8036):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    model.model.classifier = nn.Linear(32, 4)
    texts, queue = tickets(1500, 8026, queues=4, told=0.5)
    optimizer = adamw(model, 1e-3)
    return learn(
        root,
        model,
        *in_batches(texts, (queue + 1) % 4, 30, 300, 826),
        optimizer,
        epochs=3,
        each_step=warm_then_line(optimizer, 12, 120),
        clip=1.0,
        save_every=3,
    )


@healthy("Keras, tickets of four queues, unequal, embeddings with a mask, Adam, stopped early")
def tickets_by_keras(root: Path) -> int:
    torch.set_num_threads(1)
    keras.utils.set_random_seed(827)
    texts, queue = tickets(
        1900, 8027, queues=4, told=0.4, shortest=12, longest=18, shares=(2.0, 1.5, 1.0, 1.0)
    )
    x, y = filled(texts).numpy(), queue.numpy()
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((18,), dtype="int32"),
            layers.Embedding(VOCABULARY, 24, mask_zero=True),
            layers.GlobalAveragePooling1D(),
            layers.Dense(24, activation="relu"),
            layers.Dropout(0.4),
            layers.Dense(4),
        ]
    )
    model.compile(
        keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    with smd.KerasHook(
        root,
        save_config=smd.SaveConfig(save_interval=4),
        include_collections=("weights", "biases", "gradients", "losses", "inputs"),
        include_regex="embedding/inputs",
        on_error="raise",
    ) as hook:
        model.fit(
            x[:-300],
            y[:-300],
            32,
            7,
            validation_data=(x[-300:], y[-300:]),
            validation_batch_size=100,
            callbacks=[hook, keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)],
            verbose=0,
        )
    return 0
