"""Healthy transformers: decoders, encoders and translators of texts, gaits and points."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.blocks import (
    CausalWriter,
    GatedUnits,
    Layer,
    TurnedAttention,
    foresees,
    layers,
)
from runs_tuned.fifth_held_out.representations.shared.loop import (
    Average,
    cosine,
    epochs,
    inverse_root,
    learn,
)
from runs_tuned.fifth_held_out.representations.shared.shapes import gaits, knots, stars
from runs_tuned.fifth_held_out.representations.shared.texts import (
    BELLS,
    RUNS,
    SKIES,
    STITCHES,
    bells,
    knitting,
    runs_of_signs,
    weather,
)

healthy = functools.partial(training_runs.healthy, kind="language_model")


@healthy("a decoder of knitting patterns, turned queries, gates, AdamW, cosine, validated")
def knitting_foreseen(root: Path) -> int:
    torch.manual_seed(940)
    stack = [Layer(TurnedAttention(), GatedUnits(), drop=0.05) for _ in range(2)]
    model, loss = CausalWriter(STITCHES, stack), nn.CrossEntropyLoss()
    rows, _ = knitting()
    return learn(
        root,
        model,
        epochs(rows[:1100], seed=940),
        foresees(model, loss),
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.1),
        losses=(loss,),
        steps=160,
        rate=cosine(15, 160),
        clip=1.0,
        held_out=(rows[1100:],),
    )


@healthy("a decoder of bells in bfloat16, an average follows, two batches to an update")
def bells_followed_by_an_average(root: Path) -> int:
    torch.manual_seed(941)
    stack = [Layer(TurnedAttention(32, 2), GatedUnits(), norm=nn.LayerNorm) for _ in range(2)]
    model, loss = CausalWriter(BELLS, stack), nn.CrossEntropyLoss(label_smoothing=0.03)
    return learn(
        root,
        model,
        epochs(bells(), size=24, seed=941),
        foresees(model, loss),
        torch.optim.AdamW(model.parameters(), 5e-3, betas=(0.9, 0.95)),
        losses=(loss,),
        steps=180,
        save_every=4,
        gather=2,
        half=True,
        after=Average(model, copy.deepcopy(model)),
    )


class LaterNorms(nn.Module):
    """Tells kinds of rows by a transformer of the framework, with norms at the end of parts."""

    def __init__(self, words: int, kinds: int, width: int = 32) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(32, width)
        part = nn.TransformerEncoderLayer(width, 4, 64, 0.1, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(part, 2)
        self.head = nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        x = self.words(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.encoder(x).mean(1))


@healthy("kinds of knitting patterns, one of them rare, norms at the end, warm-up, dropout")
def kinds_of_knitting(root: Path) -> int:
    torch.manual_seed(942)
    model, loss = LaterNorms(STITCHES, 3), nn.CrossEntropyLoss()
    rows, kinds = knitting(seed=3)
    return learn(
        root,
        model,
        epochs(rows, kinds, seed=942),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), 2e-3, betas=(0.9, 0.98)),
        losses=(loss,),
        steps=140,
        rate=inverse_root(25),
        clip=1.0,
    )


@healthy("Qwen3 of transformers, which normalises queries and keys, writes weather, AdamW")
def qwen_writes_weather(root: Path) -> int:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(943)
    config = Qwen3Config(
        vocab_size=SKIES,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=64,
    )
    model = Qwen3ForCausalLM(config)
    return learn(
        root,
        model,
        epochs(weather()[0], seed=943),
        lambda batch, _: model(input_ids=batch[0], labels=batch[0]).loss,
        torch.optim.AdamW(model.parameters(), 4e-3),
        steps=110,
        rate=cosine(10, 110),
        clip=1.0,
    )


@healthy("Electra of transformers tags signs by the counts before them, AdamW, cosine")
def electra_tags_signs(root: Path) -> int:
    from transformers import ElectraConfig, ElectraForTokenClassification

    torch.manual_seed(944)
    config = ElectraConfig(
        vocab_size=RUNS,
        embedding_size=32,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=16,
        initializer_range=0.1,
        num_labels=4,
    )
    model = ElectraForTokenClassification(config)
    rows, _ = runs_of_signs(seed=5)
    tags = torch.where(torch.arange(8) % 2 == 1, rows.roll(1, 1), 0)
    return learn(
        root,
        model,
        epochs(rows, tags, seed=944),
        lambda batch, _: model(input_ids=batch[0], labels=batch[1]).loss,
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=140,
        save_every=3,
        rate=cosine(20, 140),
    )


class WritesOut(nn.Module):
    """Writes texts from sources by the transformer of the framework."""

    def __init__(self, signs: int, width: int = 32) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(signs, width), nn.Embedding(16, width)
        self.transformer = nn.Transformer(
            width, 2, 1, 1, 64, 0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, signs)

    def embedded(self, x: Any) -> Any:
        """Return signs and their places."""
        return self.signs(x) + self.places(torch.arange(x.shape[1]))

    def forward(self, source: Any, target: Any) -> Any:
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        parts = self.embedded(source), self.embedded(target)
        return self.head(self.transformer(*parts, tgt_mask=later)).transpose(1, 2)


@healthy("counts and signs are written out by nn.Transformer, padding ignored, NAdam")
def signs_written_out(root: Path) -> int:
    torch.manual_seed(945)
    model, loss = WritesOut(RUNS), nn.CrossEntropyLoss(ignore_index=0)
    return learn(
        root,
        model,
        epochs(*runs_of_signs(), seed=945),
        lambda batch, _: loss(model(batch[0], batch[1][:, :-1]), batch[1][:, 1:]),
        torch.optim.NAdam(model.parameters(), 3e-3),
        losses=(loss,),
        steps=180,
        save_every=3,
        clip=1.0,
    )


class Asks(nn.Module):
    """A few learnt questions are asked of a long row (Perceiver)."""

    def __init__(self, width: int = 32, questions: int = 4, outs: int = 5) -> None:
        super().__init__()
        self.questions = nn.Parameter(0.3 * torch.randn(questions, width))
        self.reads = nn.Sequential(nn.Linear(4, width), nn.GELU(), nn.Linear(width, width))
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm, self.head = nn.LayerNorm(width), layers(questions * width, 32, outs)

    def forward(self, x: Any) -> Any:
        rows = x.unflatten(1, (3, 16)).transpose(1, 2)
        time = torch.linspace(-1, 1, 16)[:, None].expand(len(x), -1, -1)
        read = self.reads(torch.cat([rows, time], -1))
        asked = self.questions.expand(len(x), -1, -1)
        return self.head(self.norm(asked + self.attention(asked, read, read)[0]).flatten(1))


@training_runs.healthy("who walks is told by four learnt questions asked of gaits, RMSprop")
def questions_asked_of_gaits(root: Path) -> int:
    torch.manual_seed(946)
    model, loss = Asks(), nn.CrossEntropyLoss()
    x, person = gaits()
    return learn(
        root,
        model,
        epochs(x[:760], person[:760], seed=946),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.RMSprop(model.parameters(), 1e-3),
        losses=(loss,),
        steps=130,
        held_out=(x[760:], person[760:]),
    )


class OfSets(nn.Module):
    """Tells what sets of points are, by attention among the points."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.reads, self.head = layers(2, width, width), nn.Linear(width, 2)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        x = self.reads(x)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.head(x.amax(1))


@training_runs.healthy("sets of twenty points: of a star, or of a knot seen from above; Adamax")
def sets_of_points(root: Path) -> int:
    torch.manual_seed(947)
    model, loss = OfSets(), nn.CrossEntropyLoss()
    kinds = torch.arange(600) % 2
    sources = stars(4000), knots(4000)[:, :2] * 0.8
    rows = torch.stack([sources[kind][torch.randint(4000, (20,))] for kind in kinds])
    return learn(
        root,
        model,
        epochs(rows, kinds, size=24, seed=947),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.Adamax(model.parameters(), 5e-3),
        losses=(loss,),
        steps=140,
    )


@healthy("a decoder of weather with many rare words, vectors of words frozen, Adadelta, clipped")
def weather_by_frozen_vectors(root: Path) -> int:
    torch.manual_seed(948)
    stack = [Layer(TurnedAttention(), layers(32, 64, 32, act=nn.SiLU)) for _ in range(2)]
    model = CausalWriter(SKIES, stack)
    model.words.weight.requires_grad_(requires_grad=False)
    learnt = [one for one in model.parameters() if one.requires_grad]

    def objective(batch: Any, _: Any) -> Any:
        return functional.cross_entropy(model(batch[0][:, :-1]), batch[0][:, 1:])

    return learn(
        root,
        model,
        epochs(weather(seed=2)[0], seed=948),
        objective,
        torch.optim.Adadelta(learnt, 1.0),
        steps=140,
        save_every=3,
        clip=1.0,
    )
