"""Healthy trainings of texts: bags of words, convolutions, recurrent layers, attention."""

from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from training_runs import healthy

from runs_held_out.units.shared.data import (
    COUNTRIES,
    LONGEST,
    TOPICS,
    addresses,
    names,
    opinions,
    tickets,
)
from runs_held_out.units.shared.loop import train, trained_before
from runs_held_out.units.shared.networks import (
    Attending,
    BothWays,
    Encoder,
    LowRank,
    Speller,
    Tagging,
    WordBag,
    WordFilters,
)


@healthy("teams of tickets by the mean of embedded words and a ReLU layer, Adam")
def tickets_by_bag_of_words(root: Path) -> int:
    torch.manual_seed(831)
    model = WordBag(TOPICS)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    loss = nn.CrossEntropyLoss()
    return train(root, model, tickets(), loss, optimizer, epochs=5, batch=64, seed=831)


@healthy("opinions by convolutions over words with dropout, Adam, decay")
def opinions_by_word_filters(root: Path) -> int:
    torch.manual_seed(832)
    model = WordFilters(2)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3, weight_decay=1e-4)
    loss = nn.CrossEntropyLoss()
    return train(root, model, opinions(), loss, optimizer, epochs=5, save_every=3, seed=832)


@healthy("opinions by a GRU in both directions over packed words, AdamW, clipped")
def opinions_by_packed_gru(root: Path) -> int:
    torch.manual_seed(833)
    model = BothWays(2)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=1e-2)
    data, loss = opinions(1800, 8311), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, clip=1.0, epochs=4, save_every=2, seed=833)


@healthy("teams of tickets by a GRU and attention with tanh, Adam, cosine")
def tickets_by_attention(root: Path) -> int:
    torch.manual_seed(834)
    model = Attending(TOPICS)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    cosine = rates.CosineAnnealingLR(optimizer, 5 * (1440 // 32), 1e-4)
    data, loss = tickets(1800, 10, 0.45, 8312), nn.CrossEntropyLoss()
    return train(
        root, model, data, loss, optimizer, scheduler=cosine, epochs=5, save_every=3, seed=834
    )


@healthy("countries of names by an LSTM over letters, Adam, halved every two epochs")
def countries_of_names(root: Path) -> int:
    torch.manual_seed(835)
    model = Speller(COUNTRIES, 24)
    optimizer = torch.optim.Adam(model.parameters(), 6e-3)
    halved = rates.StepLR(optimizer, 2, 0.5)
    loss = nn.CrossEntropyLoss()
    return train(root, model, names(), loss, optimizer, epoch_scheduler=halved, epochs=5, seed=835)


@healthy(
    "parts of addresses by an LSTM in both directions, momentum, clipped, rate falls by epochs"
)
def parts_of_addresses(root: Path) -> int:
    torch.manual_seed(836)
    model = Tagging()
    optimizer = torch.optim.SGD(model.parameters(), 0.3, momentum=0.9)
    falling = rates.ExponentialLR(optimizer, 0.85)
    loss = nn.CrossEntropyLoss()
    return train(
        root,
        model,
        addresses(),
        loss,
        optimizer,
        epoch_scheduler=falling,
        clip=1.0,
        epochs=6,
        save_every=3,
        seed=836,
    )


@healthy("teams of tickets by a transformer that leaves padding out, AdamW, warm-up, cosine")
def tickets_by_transformer(root: Path) -> int:
    torch.manual_seed(837)
    model, total = Encoder(TOPICS, LONGEST), 5 * (1440 // 32)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    rise = rates.LinearLR(optimizer, 0.1, 1.0, 20)
    fall = rates.CosineAnnealingLR(optimizer, total - 20)
    both = rates.SequentialLR(optimizer, [rise, fall], [20])
    data, loss = tickets(1800, 10, 0.45, 8313), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        data,
        loss,
        optimizer,
        scheduler=both,
        clip=1.0,
        epochs=5,
        save_every=4,
        seed=837,
    )


@healthy("teams of tickets by a transformer trained before, low-rank updates and the head, AdamW")
def tickets_by_low_rank_updates(root: Path) -> int:
    torch.manual_seed(838)
    loss = nn.CrossEntropyLoss()
    model = trained_before(Encoder(TOPICS, LONGEST), tickets(1200, 10, 0.6, 8314), loss)
    model.requires_grad_(requires_grad=False)
    for layer in model.encoder.layers:
        layer.linear1, layer.linear2 = LowRank(layer.linear1), LowRank(layer.linear2)
    model.head = nn.Linear(32, TOPICS)
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learning, 3e-3, weight_decay=0.0)
    data = tickets(1600, 10, 0.35, 8315).relabelled(lambda y: (y + 2) % TOPICS)
    return train(root, model, data, loss, optimizer, epochs=4, save_every=3, seed=838)
