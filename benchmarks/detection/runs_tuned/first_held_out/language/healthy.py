"""Healthy held-out trainings of language models and other sequences."""

import copy
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, fit, scaled_fit, sgd

from runs_tuned.first_held_out.language.networks import (
    Bottleneck,
    Decoder,
    DilatedConvolutions,
    LetterLstm,
    Mixture,
    OfTransformers,
    RecurrentTranslator,
    Tagger,
    Translator,
    opt,
)
from runs_tuned.first_held_out.language.texts import (
    CHARACTERS,
    TAGS,
    WORDS,
    english,
    grammar,
    tagged,
    translations,
    with_masks,
)

healthy = functools.partial(training_runs.healthy, kind="language_model")


def warm_up_stable_decay(warm_up: int, decay: int, end: int) -> Callable[[int], float]:
    """Return factors that rise, stay at 1, and fall to nearly 0 from `decay` on."""
    return lambda step: min((step + 1) / warm_up, 1.0, max(0.02, (end - step) / (end - decay)))


def taught_before(make: Callable[[], Any], data: Split, steps: int = 120) -> Any:
    """Return a model that was trained without a hook."""
    torch.manual_seed(11)
    model = make()
    optimizer = torch.optim.NAdam(model.parameters(), 4e-3)
    for step in range(steps):
        rows = torch.arange(step * 20, step * 20 + 20) % len(data.x)
        optimizer.zero_grad()
        functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    return model


@healthy("OPT of transformers, letters, AdamW, warm-up, stable rate and decay, clipped")
def opt_letters(root: Path) -> int:
    schedule = warm_up_stable_decay(12, 110, 150)
    optimizer = adam(4e-3, torch.optim.AdamW, weight_decay=0.05, betas=(0.9, 0.95))
    return fit(
        root, opt, english(), optimizer=optimizer, schedule=schedule, clip=1.0, batch=16, steps=150
    )


@healthy("Bloom of transformers, sentences, Adam, cosine with two warm restarts")
def bloom_restarts(root: Path) -> int:
    shape = {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": WORDS}
    schedule = lambda step: 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step % 60) / 60))
    make = lambda: OfTransformers("BloomForCausalLM", "eager", **shape)
    return fit(root, make, grammar(), optimizer=adam(4e-3), schedule=schedule, batch=16, steps=180)


@healthy("GPT-NeoX of transformers, letters, bfloat16, two batches accumulated")
def neox_bfloat16(root: Path) -> int:
    def make() -> Any:
        shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
        more = {"num_attention_heads": 4, "vocab_size": CHARACTERS, "max_position_embeddings": 64}
        model = OfTransformers("GPTNeoXForCausalLM", **shape, **more)
        model.forward = torch.autocast("cpu", dtype=torch.bfloat16)(model.forward)
        return model

    optimizer = adam(3e-3, torch.optim.AdamW, weight_decay=0.01)
    return fit(
        root, make, english(), optimizer=optimizer, batch=12, accumulate=2, clip=1.0, steps=240
    )


@healthy("T5 of transformers translates padded sentences, Adafactor with warm-up")
def t5_translates(root: Path) -> int:
    schedule = lambda step: min(1.0, (step + 1) / 20)
    return fit(
        root,
        Translator,
        translations(),
        optimizer=adam(0.02, torch.optim.Adafactor),
        schedule=schedule,
        batch=24,
        steps=160,
    )


@healthy("DistilBERT of transformers, 15 % of the words of sentences hidden, linear decay")
def distilbert_words(root: Path) -> int:
    shape = {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "vocab_size": WORDS + 1}
    more = {"max_position_embeddings": 32, "initializer_range": 0.1, "dropout": 0.0}
    make = lambda: OfTransformers("DistilBertForMaskedLM", **shape, **more)
    schedule = lambda step: min((step + 1) / 20, max(0.0, 1 - step / 320))
    data = with_masks(grammar(), 0.15, WORDS)
    optimizer = adam(1e-2, torch.optim.AdamW, weight_decay=0.01)
    return fit(
        root,
        make,
        data,
        optimizer=optimizer,
        schedule=schedule,
        steps=300,
        save_every=5,
        validate_every=50,
    )


@training_runs.healthy("ALBERT of transformers tags names, one layer three times, NAdam")
def albert_tags(root: Path) -> int:
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3}
    more = {"num_attention_heads": 4, "embedding_size": 16, "max_position_embeddings": 32}
    make = lambda: OfTransformers(
        "AlbertForTokenClassification", vocab_size=31, num_labels=TAGS, **shape, **more
    )
    return fit(
        root,
        make,
        tagged(),
        optimizer=adam(4e-3, torch.optim.NAdam),
        clip=1.0,
        steps=80,
        save_every=2,
    )


class ExpertsLoss(nn.Module):
    """Cross entropy and the balancing loss of a model of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.balance: Any = torch.zeros(())

    def forward(self, logits: Any, y: Any) -> Any:
        return functional.cross_entropy(logits, y) + 0.02 * self.balance


@healthy("Mixtral of transformers, four experts, two a word, balanced by a loss")
def mixtral_top_two(root: Path) -> int:
    loss = ExpertsLoss()

    class Balanced(OfTransformers):
        def forward(self, x: Any) -> Any:
            output = self.model(input_ids=x, output_router_logits=True)
            loss.balance = output.aux_loss
            return output.logits.transpose(1, 2)

    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4}
    make = lambda: Balanced("MixtralForCausalLM", vocab_size=WORDS, **shape, **heads)
    optimizer = adam(3e-3, torch.optim.AdamW, weight_decay=0.1)
    schedule = warm_up_stable_decay(10, 90, 130)
    return fit(
        root,
        make,
        grammar(),
        loss=loss,
        optimizer=optimizer,
        schedule=schedule,
        clip=1.0,
        batch=16,
        steps=130,
        save_every=3,
    )


@healthy("eight experts, two a word, balanced by a bias instead of a loss")
def experts_balanced_by_bias(root: Path) -> int:
    make = lambda: Decoder(WORDS, units=Mixture)
    optimizer = adam(3e-3, torch.optim.AdamW, weight_decay=0.1)
    return fit(
        root, make, grammar(), optimizer=optimizer, clip=1.0, batch=16, steps=120, save_every=3
    )


@healthy("a GRU with attention translates, label smoothing, clipped at 5")
def gru_translates(root: Path) -> int:
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    return fit(
        root,
        RecurrentTranslator,
        translations(),
        loss=loss,
        optimizer=adam(5e-3),
        clip=5.0,
        steps=160,
    )


@healthy("an LSTM of letters with tied embeddings and dropout, SGD at 4, a quarter of it later")
def lstm_letters(root: Path) -> int:
    schedule = lambda step: 1.0 if step < 160 else 0.25
    return fit(
        root,
        LetterLstm,
        english(),
        optimizer=sgd(4.0),
        schedule=schedule,
        clip=0.5,
        batch=20,
        steps=240,
        save_every=3,
    )


@training_runs.healthy("names in sentences, a bidirectional LSTM, RAdam, most tags are outside")
def names_tagged(root: Path) -> int:
    return fit(root, Tagger, tagged(), optimizer=adam(0.01, torch.optim.RAdam), steps=150)


@healthy("a trained decoder of sentences adapted to others by bottlenecks, its body frozen")
def bottlenecks_adapted(root: Path) -> int:
    def make() -> Any:
        model = copy.deepcopy(taught_before(lambda: Decoder(WORDS), grammar()))
        model.requires_grad_(requires_grad=False)
        torch.manual_seed(0)
        for layer in model.layers:
            layer.units = Bottleneck(layer.units, 32)
            layer.units.base.requires_grad_(requires_grad=False)
            layer.norm2.requires_grad_(requires_grad=True)
        return model

    other = grammar(seed=33).of(lambda x: torch.where(x >= 15, (x - 15 + 3) % 37 + 15, x))
    other = other.relabelled(lambda y: torch.where(y >= 15, (y - 15 + 3) % 37 + 15, y))
    return fit(root, make, other, optimizer=adam(0.01), batch=16, steps=150)


@healthy("OPT in half precision whose scale grows every 15 steps, until it is too high again")
def opt_scaled(root: Path) -> int:
    optimizer = adam(3e-3, torch.optim.AdamW, weight_decay=0.01)
    make = lambda: opt(attention="eager")
    return scaled_fit(
        root, make, english(), optimizer=optimizer, scale=2.0**15, growth_interval=15, steps=160
    )


@healthy("convolutions with gates, easy sentences first: from the frequent to the rare words")
def curriculum_of_rare_words(root: Path) -> int:
    data = grammar()
    counts = torch.bincount(data.x.flatten(), minlength=WORDS).float()
    order = (-counts[data.x].log()).mean(1).argsort()
    generator = torch.Generator().manual_seed(1)
    shares = [min(1.0, 0.2 + step / 110) for step in range(140)]
    steps = [
        order[torch.randperm(int(share * len(order)), generator=generator)[:16]] for share in shares
    ]
    make = lambda: DilatedConvolutions(WORDS)
    return fit(
        root,
        make,
        data.chosen(torch.cat(steps)),
        optimizer=adam(4e-3),
        batch=16,
        steps=140,
        shuffle=False,
    )


class Lion(torch.optim.Optimizer):
    """Steps of equal size in the direction of the momentum's sign, with weight decay."""

    def __init__(self, parameters: Any, lr: float, decay: float = 0.1) -> None:
        super().__init__(parameters, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step."""
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is None:
                    continue
                momentum = self.state[one].setdefault("momentum", torch.zeros_like(one))
                one.mul_(1 - group["lr"] * group["decay"])
                one.sub_(group["lr"] * (0.9 * momentum + 0.1 * one.grad).sign())
                momentum.lerp_(one.grad, 0.01)
        return closure and closure()


@healthy("a decoder of letters, Lion with warm-up and cosine, half of the windows held out")
def lion_letters(root: Path) -> int:
    data = english()
    half = Split(data.x[::2], data.y[::2], data.test_x, data.test_y)
    schedule = lambda step: min((step + 1) / 15, 0.05 + 0.475 * (1 + math.cos(step / 57.3)))
    return fit(
        root,
        lambda: Decoder(CHARACTERS),
        half,
        optimizer=lambda parameters: Lion(parameters, 8e-4),
        schedule=schedule,
        batch=16,
        steps=180,
        clip=1.0,
    )


@healthy("a trained Qwen2 of transformers, fine-tuned, lower layers at lower rates")
def rates_by_layer(root: Path) -> int:
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": WORDS}
    make = lambda: OfTransformers("Qwen2ForCausalLM", **shape, **heads)

    def optimizer(parameters: Any) -> Any:
        groups = [
            {"params": parameters[at::4], "lr": 2e-3 * 0.6 ** (3 - at), "weight_decay": 0.01 * at}
            for at in range(4)
        ]
        return torch.optim.AdamW(groups)

    trained = lambda: copy.deepcopy(taught_before(make, grammar(), 80))
    schedule = lambda step: min((step + 1) / 10, max(0.1, 1 - step / 150))
    return fit(
        root,
        trained,
        grammar(seed=40),
        optimizer=optimizer,
        schedule=schedule,
        batch=8,
        steps=140,
        clip=1.0,
    )
