"""Healthy trainings of language models: transformers' small ones, state spaces, and others."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.pretrained import (
    FEW_HEADS,
    SMALL,
    Small,
    hidden_words,
)
from runs_tuned.third_held_out.sequences.shared.readers import (
    Heads,
    Retention,
    Selective,
    Spelling,
    Writer,
)
from runs_tuned.third_held_out.sequences.shared.texts import (
    GENES,
    KINDS,
    NESTED,
    SHOP,
    SPELLED,
    clicks,
    genes,
    known,
    nested,
    spelled,
    tagged,
    windows,
)

healthy = functools.partial(training_runs.healthy, kind="language_model")


def adamw(model: Any, rate: float = 3e-3, **more: Any) -> Any:
    """Return an optimizer of all parameters."""
    return torch.optim.AdamW(model.parameters(), rate, **more)


def parted(x: Any, y: Any, size: int = 16, seed: int = 0) -> tuple[Any, tuple[Any, Any]]:
    """Return batches of most rows, and the rest of the rows."""
    cut = len(x) * 9 // 10
    return dealt(x[:cut], y[:cut], size=size, seed=seed), (x[cut:], y[cut:])


@healthy("Mistral of transformers, a sliding window of six, codons, bfloat16, warm-up and cosine")
def mistral_slides(root: Path) -> int:
    torch.manual_seed(360)
    model = Small("Mistral", "ForCausalLM", GENES, sliding_window=6, **SMALL, **FEW_HEADS)
    batches, rest = parted(*windows(genes()), seed=360)
    return teach(
        root,
        model,
        batches,
        adamw(model, 4e-3, weight_decay=0.1, betas=(0.9, 0.95)),
        schedule=warmed(12, 130, 0.0),
        steps=130,
        save_every=2,
        clip=1.0,
        half=torch.bfloat16,
        held_out=rest,
    )


@healthy("Phi of transformers, brackets, dropout, four batches accumulated, every 10th step saved")
def phi_accumulates(root: Path) -> int:
    torch.manual_seed(361)
    drops = {"resid_pdrop": 0.1, "embd_pdrop": 0.05, "attention_dropout": 0.1}
    model = Small("Phi", "ForCausalLM", NESTED, num_attention_heads=4, **SMALL, **drops)
    batches, rest = parted(*windows(nested()), size=8, seed=361)
    return teach(
        root,
        model,
        batches,
        adamw(model, 3e-3),
        steps=280,
        save_every=10,
        accumulate=4,
        clip=1.0,
        held_out=rest,
        validate_every=40,
    )


@healthy("RoBERTa of transformers tells kinds of words, of which some are of two, Adam")
def roberta_tells_kinds(root: Path) -> int:
    torch.manual_seed(362)
    drops = {"hidden_dropout_prob": 0.05, "attention_probs_dropout_prob": 0.0}
    shape = {**SMALL, "num_attention_heads": 4, "max_position_embeddings": 40, "num_labels": KINDS}
    model = Small(
        "Roberta", "ForTokenClassification", SHOP, initializer_range=0.1, **shape, **drops
    )
    batches, rest = parted(*tagged(), seed=362)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    falls = lambda step: 1 - step / 150
    return teach(
        root, model, batches, optimizer, schedule=falls, steps=145, save_every=3, held_out=rest
    )


@healthy("BART of transformers spells words in reverse, labels smoothed, inverse root of the step")
def bart_spells(root: Path) -> int:
    torch.manual_seed(363)
    layers = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "init_std": 0.1}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    units = {"encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "max_position_embeddings": 20}
    more = {"dropout": 0.05, "decoder_start_token_id": 1}
    model = Small("Bart", "ForConditionalGeneration", SPELLED, **layers, **heads, **units, **more)
    source, target = spelled()
    batches = dealt(source, target[:, :-1], target[:, 1:], size=24, seed=363)
    return teach(
        root,
        model,
        batches,
        torch.optim.Adam(model.parameters(), 6e-3, betas=(0.9, 0.98)),
        loss=nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1),
        schedule=lambda step: min((step + 1) / 25, (25 / (step + 1)) ** 0.5),
        steps=160,
        save_every=4,
    )


@healthy("ALBERT of transformers: layers share weights, a fifth of the clicked goods are hidden")
def albert_shares(root: Path) -> int:
    torch.manual_seed(364)
    shape = {**SMALL, "num_attention_heads": 4, "embedding_size": 16, "initializer_range": 0.08}
    drops = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = Small("Albert", "ForMaskedLM", SHOP, max_position_embeddings=24, **shape, **drops)
    batches, rest = parted(*hidden_words(clicks(), 0.2, SHOP - 1), size=24, seed=364)
    optimizer = torch.optim.NAdam(model.parameters(), 3e-3)
    return teach(root, model, batches, optimizer, steps=160, save_every=5, held_out=rest)


@healthy("Mamba of transformers, sessions of clicks, every 8th step saved, clipped")
def mamba_clicks(root: Path) -> int:
    torch.manual_seed(365)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "use_cache": False}
    model = Small("Mamba", "ForCausalLM", SHOP, **shape)
    batches, rest = parted(*known(clicks()), seed=365)
    more = {"clip": 1.0, "held_out": rest}
    return teach(root, model, batches, adamw(model, 4e-3), steps=96, save_every=8, **more)


@healthy("a selective state space of codons, Adam with AMSGrad, every step saved")
def selective_codons(root: Path) -> int:
    torch.manual_seed(366)
    model = Writer(GENES, mixer=Selective, layers=1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, amsgrad=True)
    batches, rest = parted(*windows(genes()), seed=366)
    return teach(root, model, batches, optimizer, steps=90, held_out=rest)


@healthy("a retention decoder of brackets, SGD with Nesterov momentum, a triangle of the rate")
def retention_triangle(root: Path) -> int:
    torch.manual_seed(367)
    model = Writer(NESTED, mixer=Retention, drop=0.05)
    optimizer = torch.optim.SGD(model.parameters(), 0.08, momentum=0.9, nesterov=True)
    triangle = lambda step: 0.1 + 0.9 * (1 - abs(step % 80 - 40) / 40)
    batches, rest = parted(*windows(nested()), seed=367)
    return teach(
        root,
        model,
        batches,
        optimizer,
        schedule=triangle,
        steps=200,
        save_every=3,
        clip=2.0,
        held_out=rest,
    )


@healthy("a decoder of codons that sees all of the first half (a prefix) learns the second half")
def prefix_of_half(root: Path) -> int:
    def mask(length: int) -> Any:
        at = torch.arange(length)
        return (at[:, None] >= at) | (at < 12)

    torch.manual_seed(368)
    model = Writer(GENES, mixer=lambda: Heads(mask=mask))
    x, y = windows(genes())
    y = y.clone()
    y[:, :12] = -100
    batches, rest = parted(x, y, seed=368)
    return teach(root, model, batches, adamw(model), steps=140, save_every=4, held_out=rest)


@healthy("a decoder of brackets also foresees the second next word, AdamW, clipped")
def two_words_ahead(root: Path) -> int:
    torch.manual_seed(369)
    model = Writer(NESTED, outs=2 * NESTED)
    rows = nested()

    def objective(batch: Any, _: Any) -> Any:
        next_, second = model(batch[0][:, :-2]).chunk(2, 1)
        further = functional.cross_entropy(second, batch[0][:, 2:])
        return functional.cross_entropy(next_, batch[0][:, 1:-1]) + 0.3 * further

    return teach(
        root,
        model,
        dealt(rows, seed=369),
        adamw(model),
        objective=objective,
        schedule=warmed(10, 150),
        steps=150,
        save_every=2,
        clip=1.0,
    )


@healthy("a small decoder learns from a larger one and from clicks, distillation, Adamax")
def distilled_clicks(root: Path) -> int:
    torch.manual_seed(370)
    x, y = known(clicks())
    teacher, student = Writer(SHOP), Writer(SHOP, width=16, layers=1, mixer=lambda: Heads(16, 2))
    student.layers[0].units = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    optimizer = adamw(teacher, 5e-3)
    for at in range(0, 1600, 16):
        rows = torch.arange(at, at + 16) % len(x)
        optimizer.zero_grad()
        functional.cross_entropy(teacher(x[rows]), y[rows]).backward()
        optimizer.step()

    def objective(batch: Any, _: Any) -> Any:
        scores = student(batch[0])
        with torch.no_grad():
            goal = (teacher(batch[0]) / 2).softmax(1)
        soft = -(goal * (scores / 2).log_softmax(1)).sum(1).mean()
        return 0.5 * functional.cross_entropy(scores, batch[1]) + 2 * soft

    adamax = torch.optim.Adamax(student.parameters(), 8e-3)
    return teach(
        root, student, dealt(x, y, seed=370), adamax, objective=objective, steps=150, save_every=6
    )


@healthy("words are spelled in reverse, encoder and decoder, norms after, float16 with a scaler")
def spelled_in_half(root: Path) -> int:
    torch.manual_seed(371)
    model = Spelling(SPELLED)
    source, target = spelled()
    return teach(
        root,
        model,
        dealt(source, target[:, :-1], target[:, 1:], size=24, seed=371),
        adamw(model, 3e-3),
        loss=nn.CrossEntropyLoss(ignore_index=0),
        steps=150,
        save_every=3,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**17, growth_interval=30),
    )
