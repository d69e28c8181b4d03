"""Healthy trainings on sequences: recurrent networks, transformers, embeddings."""

from pathlib import Path
from typing import Any

from torch import nn
from training.learnt_data import TOKENS, sentences, texts, waves
from training.small_networks import Lora, Recurrent, Transformer
from training.torch_loop import adam, fit
from training_runs import healthy


class Bag(nn.Module):
    """The mean of the tokens' embeddings, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding0 = nn.EmbeddingBag(TOKENS, 16, padding_idx=0)
        self.head = nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        return self.head(self.embedding0(x))


@healthy("sentences, bag of embeddings, Adam")
def sentences_bag(root: Path) -> int:
    return fit(root, Bag, sentences(), optimizer=adam(0.02), steps=120)


@healthy("sentences, GRU, Adam, gradients clipped")
def sentences_gru(root: Path) -> int:
    make = lambda: Recurrent(nn.GRU, 2)
    return fit(root, make, sentences(), optimizer=adam(0.01), clip=1.0, steps=120, save_every=3)


@healthy("sentences, LSTM, Adam, gradients clipped")
def sentences_lstm(root: Path) -> int:
    make = lambda: Recurrent(nn.LSTM, 2)
    return fit(root, make, sentences(), optimizer=adam(0.01), clip=1.0, steps=120, save_every=3)


@healthy("sine waves, plain RNN, mean squared error")
def waves_rnn(root: Path) -> int:
    make = lambda: Recurrent(nn.RNN, 1, tokens=False)
    return fit(
        root,
        make,
        waves(),
        loss=nn.MSELoss(),
        optimizer=adam(5e-3),
        clip=1.0,
        steps=120,
        save_every=3,
    )


@healthy("sentences, transformer, AdamW, learning rate warmed up from 0")
def sentences_transformer_warm_up(root: Path) -> int:
    def rate(step: int) -> float:
        return min(1.0, step / 30)

    make = lambda: Transformer(2)
    return fit(root, make, sentences(), optimizer=adam(3e-3), schedule=rate, steps=100)


@healthy("a small language, causal transformer, Adam", kind="language_model")
def texts_transformer(root: Path) -> int:
    make = lambda: Transformer(TOKENS, causal=True)
    return fit(root, make, texts(), optimizer=adam(5e-3), steps=120, save_every=3)


@healthy("sentences, a trained transformer adapted by low-rank updates that begin at zero")
def sentences_lora(root: Path) -> int:
    def make() -> Any:
        model = Transformer(2)
        model.requires_grad_(False)
        for encoder in model.encoders:
            encoder.linear1 = Lora(encoder.linear1)
            encoder.linear2 = Lora(encoder.linear2)
        model.head = nn.Linear(32, 2)
        return model

    return fit(root, make, sentences(), optimizer=adam(0.01), steps=120)
