"""Speller: a network of GRUs that reads a word and writes another."""

import math
from typing import Any

import torch
from torch import nn

from runs_tuned.third_held_out.sequences.shared.texts import SPELLED


class Speller(nn.Module):
    """A GRU that reads, and one that attends and writes, now and then after its own letters."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SPELLED, 24, padding_idx=0)
        self.reader = nn.GRU(24, 20, batch_first=True, bidirectional=True)
        self.writer = nn.GRUCell(64, 40)
        self.query, self.head = nn.Linear(40, 40), nn.Linear(80, SPELLED)
        self.own = 0.0

    def forward(self, source: Any, target: Any) -> Any:
        memory, last = self.reader(self.embedding(source))
        state = torch.cat([*last], -1)
        word, found = target[:, 0], []
        for at in range(target.shape[1]):
            scores = (memory @ self.query(state)[..., None])[..., 0] / math.sqrt(40)
            weights = scores.masked_fill(source == 0, -1e4).softmax(-1)
            seen = (weights[..., None] * memory).sum(1)
            state = self.writer(torch.cat([self.embedding(word), seen], -1), state)
            found.append(self.head(torch.cat([state, seen], -1)))
            if at + 1 < target.shape[1]:
                is_own = (torch.rand(len(word)) < self.own) & self.training
                word = torch.where(is_own, found[-1].argmax(-1), target[:, at + 1])
        return torch.stack(found, -1)
