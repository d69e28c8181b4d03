"""Healthy language models: decoders, readers and writers, and mixtures of experts."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.data import (
    DATE_SIGNS,
    HOURS,
    LETTERS,
    RECIPE,
    RECIPE_WORDS,
    SIGNS,
    STRING,
    brackets,
    dates,
    households,
    names,
    recipes,
    standardised,
    table,
)
from runs_held_out.representations.shared.loop import cosine, linear, loader, train
from runs_held_out.representations.shared.networks import (
    Decoder,
    Layer,
    MixtureLayer,
    SelfAttention,
    layers,
    next_word,
)

of_texts = functools.partial(training_runs.healthy, kind="language_model")


@of_texts("names letter by letter, a decoder of two layers, AdamW, warm-up and cosine, clipped")
def gpt_of_names(root: Path) -> int:
    torch.manual_seed(831)
    stack = [Layer(64, SelfAttention(64, 4, causal=True, drop=0.1), drop=0.1) for _ in range(2)]
    model = Decoder(LETTERS, 64, stack, std=0.02)
    loss = nn.CrossEntropyLoss(ignore_index=0)
    return train(
        root,
        model,
        loader(names()[:1000], seed=831),
        next_word(model, loss),
        torch.optim.AdamW(model.parameters(), 2e-3, betas=(0.9, 0.95), weight_decay=0.1),
        losses=(loss,),
        factor=cosine(15, 180, 0.1),
        clip=1.0,
        steps=180,
        save_every=3,
        validation=(names()[1000:],),
        validate_every=60,
    )


def whole_loss(model: Any) -> Any:
    """Return what computes the loss of a model of transformers, padding left out."""

    def value(batch: Any, _: Any) -> Any:
        ids = batch[0]
        is_word = (ids != 0).long()
        labels = ids.masked_fill(ids == 0, -100)
        return model(input_ids=ids, attention_mask=is_word, labels=labels).loss

    return value


@of_texts("recipes by a small GPT-2 of transformers, padded, AdamW, rates along lines, clipped")
def gpt2_of_recipes(root: Path) -> int:
    import transformers

    torch.manual_seed(832)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=RECIPE_WORDS,
            n_positions=RECIPE,
            n_embd=48,
            n_layer=2,
            n_head=4,
            bos_token_id=1,
            eos_token_id=2,
            use_cache=False,
        )
    )
    x, _ = recipes()
    return train(
        root,
        model,
        loader(x[:1000], size=16, seed=832),
        whole_loss(model),
        torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01),
        factor=linear(10, 150),
        clip=1.0,
        save_every=4,
        validation=(x[1000:],),
        validate_every=50,
    )


@of_texts("brackets by a small Llama of transformers, grouped queries, AdamW, a cosine, clipped")
def llama_of_brackets(root: Path) -> int:
    import transformers

    torch.manual_seed(833)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=SIGNS,
            hidden_size=48,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=STRING,
            bos_token_id=1,
            eos_token_id=2,
            use_cache=False,
        )
    )
    return train(
        root,
        model,
        loader(brackets(), size=24, seed=833),
        whole_loss(model),
        torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.95), weight_decay=0.1),
        factor=cosine(12, 140, 0.1),
        clip=1.0,
        steps=140,
        save_every=4,
    )


@of_texts("masked words of recipes by a small BERT of transformers (80/10/10), AdamW, no decay")
def bert_of_recipes(root: Path) -> int:
    import transformers

    torch.manual_seed(834)
    words = RECIPE_WORDS + 1
    model = transformers.BertForMaskedLM(
        transformers.BertConfig(
            vocab_size=words,
            hidden_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=96,
            max_position_embeddings=RECIPE,
        )
    )

    def value(batch: Any, _: Any) -> Any:
        ids = batch[0]
        is_word = ids != 0
        is_asked = is_word & (torch.rand(ids.shape) < 0.2)
        dice = torch.rand(ids.shape)
        given = torch.where(is_asked & (dice < 0.8), RECIPE_WORDS, ids)
        is_random = is_asked & (dice > 0.9)
        given = torch.where(is_random, torch.randint(1, RECIPE_WORDS, ids.shape), given)
        labels = ids.masked_fill(~is_asked, -100)
        return model(input_ids=given, attention_mask=is_word.long(), labels=labels).loss

    return train(
        root,
        model,
        loader(recipes()[0], seed=834),
        value,
        torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0),
        factor=linear(15, 160),
        clip=1.0,
        steps=160,
        save_every=4,
    )


class Translator(nn.Module):
    """PyTorch's transformer with embeddings and a head."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(DATE_SIGNS, width), nn.Embedding(16, width)
        self.transformer = nn.Transformer(width, 4, 1, 1, 96, 0.1, batch_first=True)
        self.head = nn.Linear(width, DATE_SIGNS)

    def embed(self, x: Any) -> Any:
        """Return embeddings of signs and places."""
        return self.signs(x) + self.places(torch.arange(x.shape[1]))

    def forward(self, source: Any, target: Any) -> Any:
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        seen = self.transformer(self.embed(source), self.embed(target), tgt_mask=later)
        return self.head(seen)


@of_texts(
    "dates as people write them into dates for machines, reader and writer, Adam, Noam's rate"
)
def dates_for_machines(root: Path) -> int:
    torch.manual_seed(835)
    source, target = dates()
    model, loss = Translator(), nn.CrossEntropyLoss(label_smoothing=0.1)
    return train(
        root,
        model,
        loader(source[:1000], target[:1000], seed=835),
        lambda batch, _: loss(
            model(batch[0], batch[1][:, :-1]).flatten(0, 1), batch[1][:, 1:].flatten()
        ),
        torch.optim.Adam(model.parameters(), 3e-3, betas=(0.9, 0.98), eps=1e-9),
        losses=(loss,),
        factor=lambda step: min((step + 1) / 30, (30 / (step + 1)) ** 0.5),
        steps=200,
        save_every=4,
        validation=(source[1000:], target[1000:]),
        validate_every=50,
    )


class Days(nn.Module):
    """Foresees the last six hours of a day from the first eighteen."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.value = nn.Linear(1, width)
        self.hour = nn.Parameter(0.1 * torch.randn(HOURS - 6, width))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True, norm_first=True),
            2,
            enable_nested_tensor=False,
        )
        self.head = nn.Linear(width, 6)

    def forward(self, x: Any) -> Any:
        return self.head(self.encoder(self.value(x[..., None]) + self.hour)[:, -1])


@training_runs.healthy("a household's evening from its day, encoder layers, AdamW, validated")
def evenings_of_households(root: Path) -> int:
    torch.manual_seed(836)
    x, _ = households()
    x = (x - x[:1000].mean()) / x[:1000].std()
    model, loss = Days(), nn.MSELoss()
    return train(
        root,
        model,
        loader(x[:1000], seed=836),
        lambda batch, _: loss(model(batch[0][:, :-6]), batch[0][:, -6:]),
        torch.optim.AdamW(model.parameters(), 1e-3),
        losses=(loss,),
        factor=cosine(10, 200),
        steps=200,
        save_every=4,
        validation=(x[1000:],),
    )


@of_texts("names by a switch of four experts, one a letter, balanced by a loss of 0.01, AdamW")
def switch_of_names(root: Path) -> int:
    torch.manual_seed(837)
    mixtures = [MixtureLayer(48, 4, 1) for _ in range(2)]
    stack = [Layer(48, SelfAttention(48, 4, causal=True), mixture) for mixture in mixtures]
    model = Decoder(LETTERS, 48, stack, std=0.02)
    of_letters = next_word(model, nn.CrossEntropyLoss(ignore_index=0))

    def value(batch: Any, watching: Any) -> Any:
        letters = of_letters(batch, watching)
        return letters + 0.01 * sum(mixture.balance for mixture in mixtures)

    return train(
        root,
        model,
        loader(names(), seed=837),
        value,
        torch.optim.AdamW(model.parameters(), 2e-3),
        factor=cosine(10, 160, 0.1),
        clip=1.0,
        steps=160,
        save_every=3,
    )


@of_texts("brackets by a small Mixtral of transformers, two of four experts, its loss, AdamW")
def mixtral_of_brackets(root: Path) -> int:
    import transformers

    torch.manual_seed(838)
    model = transformers.MixtralForCausalLM(
        transformers.MixtralConfig(
            vocab_size=SIGNS,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=4,
            num_experts_per_tok=2,
            output_router_logits=True,
            router_aux_loss_coef=0.02,
            max_position_embeddings=STRING,
            bos_token_id=1,
            eos_token_id=2,
            use_cache=False,
        )
    )
    return train(
        root,
        model,
        loader(brackets(), size=16, seed=838),
        whole_loss(model),
        torch.optim.AdamW(model.parameters(), 3e-3),
        factor=cosine(10, 120, 0.1),
        clip=1.0,
        steps=120,
        save_every=4,
    )


class Mixed(nn.Module):
    """A stem, a layer of experts, and a head, for the columns of a table."""

    def __init__(self, columns: int, kinds: int, mixture: Any, width: int = 32) -> None:
        super().__init__()
        self.stem, self.norm = nn.Linear(columns, width), nn.LayerNorm(width)
        self.mixture, self.head = mixture, nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        return self.head(x + self.mixture(self.norm(x)))


@training_runs.healthy("wines by a layer of four experts, two a row, balanced, Adam, a level rate")
def wines_by_experts(root: Path) -> int:
    torch.manual_seed(839)
    x, kind = table("wine")
    mixture = MixtureLayer(32, 4, 2)
    model, loss = Mixed(13, 3, mixture), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        loader(standardised(x), kind, size=32, seed=839),
        lambda batch, _: loss(model(batch[0]), batch[1]) + 0.02 * mixture.balance,
        torch.optim.Adam(model.parameters(), 1e-3),
        steps=120,
    )


class LowRank(nn.Module):
    """A frozen layer, and an update of low rank that begins at zero."""

    def __init__(self, base: Any, rank: int = 8) -> None:
        super().__init__()
        self.base = base.requires_grad_(requires_grad=False)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + 2 * self.lora_B(self.lora_A(x))


@of_texts("a decoder that knows names learns other names by low ranks, AdamW, two batches a step")
def other_names_by_low_ranks(root: Path) -> int:
    torch.manual_seed(840)
    torch.set_num_threads(1)
    stack = [Layer(48, SelfAttention(48, 4, causal=True)) for _ in range(2)]
    model = Decoder(LETTERS, 48, stack, std=0.02)
    before = torch.optim.AdamW(model.parameters(), 3e-3)
    for (rows,), _ in zip(loader(names(), seed=1), range(150), strict=False):
        before.zero_grad()
        scores = model(rows[:, :-1]).flatten(0, 1)
        functional.cross_entropy(scores, rows[:, 1:].flatten(), ignore_index=0).backward()
        before.step()
    before.zero_grad()
    model.requires_grad_(requires_grad=False)
    for layer in model.stack:
        layer.attention.qkv = LowRank(layer.attention.qkv)
        layer.attention.proj = LowRank(layer.attention.proj)
        layer.part[0], layer.part[2] = LowRank(layer.part[0]), LowRank(layer.part[2])
    other = names(seed=5)
    other = torch.where(other > 1, (other - 2 + 7) % 26 + 2, other)  # another language
    loss = nn.CrossEntropyLoss(ignore_index=0)
    return train(
        root,
        model,
        loader(other, seed=840),
        next_word(model, loss),
        torch.optim.AdamW([part for part in model.parameters() if part.requires_grad], 5e-3),
        losses=(loss,),
        factor=linear(10, 160),
        clip=1.0,
        accumulate=2,
        steps=160,
        save_every=4,
    )


class Reviewer(nn.Module):
    """Tells the kind of a dish from its recipe; padding is masked, and left out of the mean."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(RECIPE_WORDS, width, padding_idx=0)
        self.places = nn.Embedding(RECIPE, width)
        self.encoder = nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True)
        self.head = layers(width, 32, 4, drop=0.1)

    def forward(self, x: Any) -> Any:
        is_pad = x == 0
        hidden = self.words(x) + self.places(torch.arange(x.shape[1]))
        hidden = self.encoder(hidden, src_key_padding_mask=is_pad)
        is_word = (~is_pad)[..., None]
        return self.head((hidden * is_word).sum(1) / is_word.sum(1))


@training_runs.healthy("kinds of dishes from recipes, an encoder layer, padding masked, Adam")
def dishes_by_an_encoder(root: Path) -> int:
    torch.manual_seed(841)
    x, kind = recipes()
    model, loss = Reviewer(), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        loader(x[:960], kind[:960], seed=841),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), 1e-3),
        losses=(loss,),
        steps=150,
        save_every=3,
        validation=(x[960:], kind[960:]),
        validate_every=30,
    )
