"""What the hook measures inside a model: attention, routers, outputs, order and modes."""

import contextlib
import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_models import ALWAYS, images, net, nn, opened, torch

import smdebug.pytorch as smd

functional = nn.functional


class CausalSelfAttention(nn.Module):
    """Heads of `scaled_dot_product_attention`, with the mask that it is made with."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Any) -> Any:
        heads = [part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)]
        return (
            functional.scaled_dot_product_attention(*heads, **self.options)
            .transpose(1, 2)
            .flatten(2)
        )


class Router(nn.Module):
    """Experts, and a gate that scores them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.top_k = nn.Linear(8, 4, bias=False), 1
        self.experts = nn.ModuleList([nn.Linear(8, 8)])

    def forward(self, x: Any) -> Any:
        return self.experts[0](x) * self.gate(x).amax(-1, keepdim=True)


def trial_of(root: Path, model: Any, *inputs: Any, **options: Any) -> Any:
    """Return the trial of two steps with the preset."""
    watching = smd.Hook(root, preset="llm", save_config=ALWAYS, on_error="raise", **options)
    watching.register_module(model)
    for _ in range(2):
        model(*inputs)
    return opened(watching)


def tokens() -> Any:
    return torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0))


def probabilities(module: Any, x: Any, hidden: Any) -> Any:
    query, key, _ = (
        part.unflatten(-1, (2, 4)).transpose(1, 2) for part in module.qkv(x).chunk(3, -1)
    )
    scores = query @ key.transpose(-1, -2) / 2
    return scores.masked_fill(hidden, -torch.inf).softmax(-1).detach()


def test_entropy_and_future_mass_of_causal_attention(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(CausalSelfAttention(is_causal=True))
    trial = trial_of(tmp_path, model, tokens())
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    weights = probabilities(model[0], tokens()[:2], hidden)
    rows = -torch.xlogy(weights, weights).sum(-1)[..., 1:] / torch.arange(2, 6).log()
    expected = rows.mean((0, 2)).numpy()
    np.testing.assert_allclose(trial.tensor("attention/0/entropy").value(1), expected, rtol=1e-5)
    assert trial.tensor("attention/0/future_mass").value(1) == 0
    assert trial.tensor_names(collection="attention") == [
        "attention/0/entropy",
        "attention/0/future_mass",
    ]


@pytest.mark.parametrize("as_scores", [False, True])
def test_mask_that_shows_the_next_position_leaks(tmp_path: Path, as_scores: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 24, 8)
    mask = torch.ones(24, 24, dtype=torch.bool).tril(1)
    attn_mask = torch.zeros(24, 24).masked_fill(~mask, -torch.inf) if as_scores else mask
    model = nn.Sequential(CausalSelfAttention(attn_mask=attn_mask))
    trial = trial_of(tmp_path, model, x)
    expected = probabilities(model[0], x, ~mask).triu(1).sum(-1).mean()
    leak = trial.tensor("attention/0/future_mass").value(0)
    assert leak == pytest.approx(float(expected), rel=1e-4)
    assert leak > 0.01


@pytest.mark.parametrize("mask", ["none", "prefix", "padding"])
def test_only_causal_attention_has_a_future(tmp_path: Path, mask: str) -> None:
    class Encoder(CausalSelfAttention):
        """Its class does not say that it is causal."""

    position = torch.arange(5)
    masks = {
        "none": None,
        "prefix": torch.ones(5, 5, dtype=torch.bool).tril() | (position < 4),
        "padding": (position < 1).expand(5, 5),  # hides the whole future, and most of the past
    }
    model = nn.Sequential(Encoder(attn_mask=masks[mask]))
    trial = trial_of(tmp_path, model, tokens())
    assert trial.tensor_names(collection="attention") == ["attention/0/entropy"]


def test_multihead_attention_of_torch(tmp_path: Path) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.5)

        def forward(self, x: Any, padding: Any) -> Any:
            return self.own(x, x, x, key_padding_mask=padding, need_weights=False)[0]

    torch.manual_seed(0)
    model, padding = Model(), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    trial = trial_of(tmp_path, model, tokens()[:2], padding)
    plain = copy.deepcopy(model.own).eval()
    _, weights = plain(*[tokens()[:2]] * 3, key_padding_mask=padding, average_attn_weights=False)
    rows = -torch.xlogy(weights, weights).sum(-1) / torch.tensor([5.0, 3.0]).log()[:, None, None]
    expected = rows.mean((0, 2)).detach().numpy()
    np.testing.assert_allclose(trial.tensor("attention/own/entropy").value(0), expected, rtol=1e-5)


ALL = torch.zeros(6, 6, dtype=torch.bool)
LATE = torch.arange(6) > 3
PREFIX = torch.ones(6, 6, dtype=torch.bool).triu(1) & (torch.arange(6) > 3)
BLOCKS = torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)) == 0


@pytest.mark.parametrize(
    ("hidden", "is_measured"),
    [
        pytest.param(ALL, True, id="hides-nothing"),
        pytest.param(ALL | LATE, True, id="hides-padding"),
        pytest.param(~ALL.logical_not().tril(2), True, id="shows-two-later-keys"),
        pytest.param(~ALL.logical_not().tril(0), True, id="causal"),
        pytest.param(PREFIX, False, id="prefix"),
        pytest.param(BLOCKS, False, id="blocks"),
    ],
)
@pytest.mark.parametrize("name", ["CausalAttention", "NonCausalAttention", "Block"])
def test_attention_called_causal_leaks_if_its_mask_is_not(
    tmp_path: Path, name: str, hidden: Any, is_measured: bool
) -> None:
    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.own(x, x, x, attn_mask=hidden)[0]

    Around.__name__ = name
    x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
    trial = trial_of(tmp_path, nn.Sequential(Around()), x)
    is_causal = bool(hidden.triu(1).sum() == 15)
    is_expected = is_causal or (is_measured and name == "CausalAttention")
    mass = "attention/0.own/future_mass"
    assert (mass in trial.tensor_names()) is is_expected
    if is_expected:
        assert (trial.tensor(mass).value(0) > 0.01) is not is_causal


@pytest.mark.parametrize("factor", [1, 2])
def test_probabilities_that_a_module_returns(tmp_path: Path, factor: int) -> None:
    class EagerAttention(nn.Module):
        is_causal = True

        def forward(self, x: Any) -> Any:
            return x, factor * torch.full((2, 1, 4, 4), 0.25)

    trial = trial_of(tmp_path, nn.Sequential(EagerAttention()), tokens())
    names = ["attention/0/entropy", "attention/0/future_mass"]
    assert trial.tensor_names(collection="attention") == (names if factor == 1 else [])
    if factor == 1:
        assert trial.tensor(names[0]).value(0) == pytest.approx(1)
        assert trial.tensor(names[1]).value(0) == pytest.approx(0.375)  # 6 of 16 are in the future


def test_load_of_experts(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(Router())
    trial = trial_of(tmp_path, model, tokens())
    choices = model[0].gate(tokens()).argmax(-1).flatten()
    expected = torch.bincount(choices, minlength=4) / 15
    np.testing.assert_allclose(trial.tensor("router/0.gate/load").value(0), expected.numpy())


def test_gate_without_experts_is_no_router(tmp_path: Path) -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.top_k = nn.Linear(8, 4), 1

        def forward(self, x: Any) -> Any:
            return self.gate(x).sigmoid()

    for name, model in {"part": nn.Sequential(Gated()), "whole": Gated()}.items():
        trial = trial_of(tmp_path / name, model, tokens())
        assert trial.tensor_names(collection="router") == []
    selected = smd.Collection("router", [r"^router/0\.gate/load$"])
    trial = trial_of(tmp_path / "by-name", nn.Sequential(Gated()), tokens(), collections=[selected])
    assert trial.tensor_names(collection="router") == ["router/0.gate/load"]


def test_outputs_order_and_mode(tmp_path: Path) -> None:
    model = net()
    outputs: list[Any] = []
    model.blocks[0].act.register_forward_hook(lambda *call: outputs.append(call[-1].detach()))
    trial = trial_of(tmp_path, model, images(0))
    mean, deviation, largest, zeros = trial.tensor("activation_statistics/blocks.0.act").value(0)
    expected = outputs[0]
    assert mean == pytest.approx(float(expected.mean()), rel=1e-5)
    assert deviation == pytest.approx(float(expected.std(correction=0)), rel=1e-5)
    assert largest == float(expected.max())
    assert zeros == pytest.approx(float((expected == 0).float().mean()))
    order = {
        name.removeprefix("model/execution_order/"): int(trial.tensor(name).value(0))
        for name in trial.tensor_names(regex="execution_order")
    }
    names = ["conv", "relu", "lstm", "blocks.0.fc", "blocks.0", "blocks.1", "blocks", "head", "Net"]
    assert sorted(names, key=order.__getitem__) == names
    assert trial.tensor("model/execution_order/conv").steps() == [0]
    assert trial.tensor("model/training_mode").value(0) == 1


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_calls_inside_transformations_are_not_measured(tmp_path: Path) -> None:
    model = nn.Sequential(CausalSelfAttention(is_causal=True))
    watching = smd.Hook(tmp_path, preset="llm", save_config=ALWAYS, on_error="raise")
    watching.register_module(model)
    model(tokens())
    torch.func.vmap(lambda x: model(x[None]))(tokens())
    torch.func.grad(lambda x: model(x).sum())(tokens())
    model(tokens())
    trial = opened(watching)
    for name in ("attention/0/entropy", "activation_statistics/0.qkv", "fingerprints/inputs"):
        assert trial.tensor(name).steps() == [0, 3]


def test_attention_after_an_error_inside(tmp_path: Path) -> None:
    class Failing(nn.Module):
        def forward(self, _: Any) -> Any:
            raise ValueError

    class Tolerant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.failing = Failing()

        def forward(self, x: Any) -> Any:
            with contextlib.suppress(ValueError):
                self.failing(x)
            return x

    class Model(CausalSelfAttention):
        def __init__(self) -> None:
            super().__init__(is_causal=True)
            self.tolerant = Tolerant()

        def forward(self, x: Any) -> Any:
            return super().forward(self.tolerant(x))

    trial = trial_of(tmp_path, nn.Sequential(Model()), tokens())
    names = ["attention/0/entropy", "attention/0/future_mass"]
    assert trial.tensor_names(collection="attention") == names


def test_nothing_of_the_training_changes(tmp_path: Path) -> None:
    def trained(preset: str) -> list[Any]:
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.25, batch_first=True)
        model = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        watching = smd.Hook(tmp_path / preset, preset=preset, save_config=ALWAYS, on_error="raise")
        watching.register_module(model)
        losses = []
        for step in range(4):
            model.train(step != 2)
            with torch.set_grad_enabled(step != 2):
                loss = model(tokens()).square().mean()
            losses.append(loss.detach().clone())
            if step != 2:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
        watching.close()
        assert not any(module._forward_hooks for module in model.modules())
        return [*losses, *(item.detach().clone() for item in model.parameters()), torch.rand(1)]

    for plain, measured in zip(trained("none"), trained("llm"), strict=True):
        assert torch.equal(plain, measured)
    assert functional.scaled_dot_product_attention.__module__.startswith("torch")


def test_preset_is_chosen_by_the_model(tmp_path: Path) -> None:
    for folder, model, preset in (
        ("attention", nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), "llm"),
        ("router", nn.Sequential(Router()), "llm"),
        ("neither", nn.Sequential(nn.Linear(8, 8)), "none"),
    ):
        watching = smd.Hook(tmp_path / folder, preset="auto", on_error="raise")
        watching.register_module(model)
        model(tokens())
        assert watching.preset == preset
        assert ("attention" in watching.include_collections) == (preset == "llm")
        watching.close()
