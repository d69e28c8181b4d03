"""Healthy language models, encoders, translators, experts and adapters."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.seventh_held_out.representations.shared.data import (
    PAD,
    characters,
    digits,
    signals,
    sums,
    words,
)
from runs_tuned.seventh_held_out.representations.shared.loop import (
    descend,
    loader,
    teach,
    warmup_cosine,
    warmup_linear,
)
from runs_tuned.seventh_held_out.representations.shared.networks import (
    Block,
    CausalSelfAttention,
    MiniGPT,
    MixtureOfExperts,
    gpt,
    next_token,
)

of_texts = functools.partial(training_runs.healthy, kind="language_model")


@of_texts("characters by a small GPT, AdamW, warm-up and cosine, clipped, dropout, validated")
def gpt_of_characters(root: Path) -> int:
    torch.manual_seed(40)
    rows, count = characters()
    model, loss = gpt(count, drop=0.1), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        loader(rows[:800], seed=40),
        next_token(model, loss),
        torch.optim.AdamW(model.parameters(), 6e-3, weight_decay=0.1, betas=(0.9, 0.95)),
        losses=(loss,),
        factor=warmup_cosine(15, 160),
        clip=1.0,
        steps=160,
        test=(rows[800:],),
    )


@of_texts("sums by a GPT, only digits after the equals sign count, AdamW, a linear schedule")
def gpt_of_sums(root: Path) -> int:
    torch.manual_seed(41)
    rows = sums()
    model, loss = gpt(12, heads=2), nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0][:, :-1])[:, 4:]
        return loss(scores.flatten(0, 1), batch[0][:, 5:].flatten())

    return teach(
        root,
        model,
        loader(rows[:1800], size=64, seed=41),
        objective,
        torch.optim.AdamW(model.parameters(), 5e-3),
        losses=(loss,),
        factor=warmup_linear(15, 200),
        clip=1.0,
        steps=200,
        save_every=3,
        test=(rows[1800:],),
    )


@of_texts("characters by a small GPT-2 of Transformers, eager attention, AdamW, warm-up")
def gpt2_of_transformers(root: Path) -> int:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(42)
    rows, count = characters(seed=1)
    shape = {"n_positions": 48, "n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": count}
    tokens = {"bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(attn_implementation="eager", use_cache=False, **shape, **tokens)
    model = GPT2LMHeadModel(config)
    return teach(
        root,
        model,
        loader(rows[:800], size=24, seed=42),
        lambda batch, _: model(input_ids=batch[0], labels=batch[0]).loss,
        torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.01),
        factor=warmup_linear(12, 130),
        clip=1.0,
        steps=130,
        test=(rows[800:],),
    )


@of_texts("characters by a small Llama of Transformers, grouped keys, AdamW, warm-up and cosine")
def llama_of_transformers(root: Path) -> int:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(43)
    rows, count = characters(seed=2)
    shape = {"hidden_size": 32, "intermediate_size": 88, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": count}
    tokens = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    config = LlamaConfig(attn_implementation="sdpa", use_cache=False, **shape, **heads, **tokens)
    model = LlamaForCausalLM(config)
    return teach(
        root,
        model,
        loader(rows, size=24, seed=43),
        lambda batch, _: model(input_ids=batch[0], labels=batch[0]).loss,
        torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.1, betas=(0.9, 0.95)),
        factor=warmup_cosine(12, 110),
        clip=1.0,
        steps=110,
        save_every=3,
    )


@of_texts("masked words of sentences by a small BERT of Transformers, AdamW, warm-up, padded")
def bert_of_transformers(root: Path) -> int:
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(44)
    rows, _, count = words(seed=3)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    more = {"intermediate_size": 64, "max_position_embeddings": 16, "vocab_size": count}
    model = BertForMaskedLM(BertConfig(attn_implementation="sdpa", **shape, **more))

    def objective(batch: Any, _: Any) -> Any:
        (tokens,) = batch
        is_word = tokens > 2
        is_masked = is_word & (torch.rand(tokens.shape) < 0.2)
        return model(
            input_ids=tokens.masked_fill(is_masked, 1),
            attention_mask=(tokens != PAD).long(),
            labels=tokens.masked_fill(~is_masked, -100),
        ).loss

    return teach(
        root,
        model,
        loader(rows, size=32, seed=44),
        objective,
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.01),
        factor=warmup_linear(15, 150),
        clip=1.0,
    )


class Reverser(nn.Module):
    """A translator by PyTorch's own transformer."""

    def __init__(self, vocabulary: int, width: int = 32) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(vocabulary, width), nn.Embedding(16, width)
        self.transformer = nn.Transformer(
            width, 4, 1, 1, 64, 0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, vocabulary)

    def embed(self, x: Any) -> Any:
        """Return embeddings with those of places."""
        return self.signs(x) + self.places(torch.arange(x.shape[1]))

    def forward(self, source: Any, target: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        read, written = self.embed(source), self.embed(target)
        return self.head(self.transformer(read, written, tgt_mask=mask, tgt_is_causal=True))


@of_texts("eight signs are sorted by PyTorch's transformer, Adam, warm-up, labels smoothed")
def signs_are_sorted(root: Path) -> int:
    torch.manual_seed(45)
    source = torch.randint(1, 20, (2000, 8))
    target = torch.cat([torch.zeros(2000, 1, dtype=torch.long), source.sort(1).values], 1)
    model, loss = Reverser(20), nn.CrossEntropyLoss(label_smoothing=0.05)

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0], batch[1][:, :-1])
        return loss(scores.flatten(0, 1), batch[1][:, 1:].flatten())

    return teach(
        root,
        model,
        loader(source, target, size=64, seed=45),
        objective,
        torch.optim.Adam(model.parameters(), 4e-3, betas=(0.9, 0.98)),
        losses=(loss,),
        factor=warmup_linear(20, 160),
        steps=160,
        save_every=3,
    )


class Vit(nn.Module):
    """Tells digits from patches and a class token, by PyTorch's encoder."""

    def __init__(self, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, stride=2)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(17, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, drop, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.encoder(x)[:, 0]))


@training_runs.healthy("digits by a small vision transformer, AdamW, warm-up and cosine, dropout")
def vit_on_digits(root: Path) -> int:
    torch.manual_seed(46)
    x, y, test_x, test_y = digits()
    model, loss = Vit(), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        loader((x - 0.3) / 0.38, y, size=48, seed=46),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05),
        losses=(loss,),
        factor=warmup_cosine(15, 180),
        clip=1.0,
        steps=180,
        save_every=3,
        test=((test_x - 0.3) / 0.38, test_y),
    )


# Experts


@of_texts("characters by a GPT with four experts, one a token (Switch), balanced, AdamW")
def switch_of_characters(root: Path) -> int:
    torch.manual_seed(47)
    rows, count = characters(seed=4)
    mixtures = [MixtureOfExperts(32, 4), MixtureOfExperts(32, 4)]
    blocks = [Block(32, CausalSelfAttention(32, 4), mixture) for mixture in mixtures]
    model = MiniGPT(count, blocks)
    of_tokens = next_token(model, nn.CrossEntropyLoss())
    return teach(
        root,
        model,
        loader(rows, size=24, seed=47),
        lambda batch, hook: (
            of_tokens(batch, hook) + 0.01 * sum(mixture.aux_loss for mixture in mixtures)
        ),
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.1),
        factor=warmup_cosine(15, 140),
        clip=1.0,
        steps=140,
    )


@of_texts("characters by a small Mixtral of Transformers, two of four experts, its own balancing")
def mixtral_of_transformers(root: Path) -> int:
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.manual_seed(48)
    rows, count = characters(seed=5)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": count}
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02}
    more = {"output_router_logits": True, "use_cache": False, "bos_token_id": 0}
    config = MixtralConfig(**shape, **heads, **experts, **more, eos_token_id=0)
    model = MixtralForCausalLM(config)
    return teach(
        root,
        model,
        loader(rows, size=24, seed=48),
        lambda batch, _: model(input_ids=batch[0], labels=batch[0]).loss,
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05),
        factor=warmup_cosine(12, 90),
        clip=1.0,
        steps=90,
    )


class Routed(nn.Module):
    """Tells kinds of signals by two of six experts for each signal."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(48, 32), nn.ReLU())
        self.mixture, self.head = MixtureOfExperts(32, 6, 2), nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        return self.head(x + self.mixture(x))


@training_runs.healthy("kinds of signals by two of six experts a row, a balancing loss, Adam")
def signals_by_experts(root: Path) -> int:
    torch.manual_seed(49)
    x, kind = signals(1500, seed=49)
    model, loss = Routed(), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        loader(x[:1200], kind[:1200], size=64, seed=49),
        lambda batch, _: loss(model(batch[0]), batch[1]) + 0.02 * model.mixture.aux_loss,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=180,
        test=(x[1200:], kind[1200:]),
    )


# Adapters


class Lora(nn.Module):
    """A frozen layer, and what is learnt beside it by low ranks."""

    def __init__(self, layer: Any, rank: int = 4, alpha: float = 8.0) -> None:
        super().__init__()
        self.base = layer.requires_grad_(requires_grad=False)
        self.lora_A = nn.Linear(layer.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.kaiming_uniform_(self.lora_A.weight, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B.weight)
        self.scaling = alpha / rank

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.scaling * self.lora_B(self.lora_A(x))


def pretrained(rows: Any, count: int, steps: int = 140) -> Any:
    """Return a GPT that has learnt before, without a hook."""
    torch.set_num_threads(1)
    model = gpt(count)
    objective = next_token(model, nn.CrossEntropyLoss())
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for batch, _ in zip(loader(rows, seed=1), range(steps), strict=False):
        descend(objective(batch, None), optimizer, 1.0)
    return model


@of_texts(
    "a trained GPT learns a text with some letters swapped by LoRA at its attention, AdamW, warm-up"
)
def lora_of_a_gpt(root: Path) -> int:
    torch.manual_seed(50)
    rows, count = characters(seed=6)
    model = pretrained(rows, count).requires_grad_(requires_grad=False)
    for block in model.blocks:
        block.attn.c_attn, block.attn.c_proj = Lora(block.attn.c_attn), Lora(block.attn.c_proj)
    loss = nn.CrossEntropyLoss()
    swapped = torch.randperm(count, generator=torch.Generator().manual_seed(50))
    few = torch.where(torch.arange(count) % 4 == 0, swapped, torch.arange(count))[rows]
    learnt = [each for each in model.parameters() if each.requires_grad]
    return teach(
        root,
        model,
        loader(few, seed=50),
        next_token(model, loss),
        torch.optim.AdamW(learnt, 1e-2),
        losses=(loss,),
        factor=warmup_linear(10, 120),
        clip=1.0,
        steps=120,
    )


class Adapted(nn.Module):
    """A frozen part, and a bottleneck behind it that begins near zero."""

    def __init__(self, part: Any, width: int = 32, narrow: int = 8) -> None:
        super().__init__()
        self.part = part.requires_grad_(requires_grad=False)
        self.down, self.up = nn.Linear(width, narrow), nn.Linear(narrow, width)
        nn.init.normal_(self.up.weight, std=1e-3)
        nn.init.zeros_(self.up.bias)

    def forward(self, x: Any) -> Any:
        x = self.part(x)
        return x + self.up(functional.gelu(self.down(x)))


class Classifier(nn.Module):
    """Tells classes by the last hidden state of a trained GPT."""

    def __init__(self, body: Any, classes: int) -> None:
        super().__init__()
        self.body, self.score = body, nn.Linear(32, classes)
        self.body.lm_head = nn.Identity()

    def forward(self, x: Any) -> Any:
        return self.score(self.body(x)[:, -1])


@of_texts("a trained GPT counts the words of a window (2 to 5) by adapters and a head, Adam")
def adapters_of_a_gpt(root: Path) -> int:
    torch.manual_seed(51)
    rows, count = characters(seed=7)
    body = pretrained(rows, count).requires_grad_(requires_grad=False)
    for block in body.blocks:
        block.attn, block.mlp = Adapted(block.attn), Adapted(block.mlp)
    space = int(rows.flatten().bincount().argmax())
    kind = (rows[:, 20:40] == space).sum(1).clamp(2, 5) - 2
    model, loss = Classifier(body, 4), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        loader(rows[:, 20:40], kind, size=48, seed=51),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.Adam([each for each in model.parameters() if each.requires_grad], 3e-3),
        losses=(loss,),
        steps=160,
        save_every=3,
    )
