"""Collections that are filled by what modules are and do, whatever they are called."""

from pathlib import Path
from typing import Any

import pytest
from torch_models import LABELS, hook, images, net, nn, opened, rows, small

import smdebug.pytorch as smd

torch = pytest.importorskip("torch", reason="torch is not installed.")
TYPED = [
    *(f"{kind}_{side}" for kind in ("relu", "tanh", "sigmoid") for side in ("input", "output")),
    *("input_image", "input_sequence", "labels", "predictions"),
]


class MyActivation(nn.ReLU):
    """An activation under a name of its own."""


class Activations(nn.Module):
    """One module of each kind, under meaningless names, and one of no kind."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = MyActivation(), nn.ReLU6(), nn.Tanh()
        self.d, self.relu = nn.Sigmoid(), nn.GELU()

    def forward(self, x: Any) -> Any:
        return self.relu(self.d(self.c(self.b(self.a(x)))))


def members(trial: Any) -> dict[str, list[str]]:
    """Return the typed collections that have any members."""
    found = {name: trial.tensor_names(collection=name) for name in trial.collections()}
    return {name: names for name, names in found.items() if name in TYPED and names}


def put(*names: str) -> dict[str, list[str]]:
    """Return the collections of activations called by letters."""
    return {
        f"{kind}_{side}": [f"{name}_{side}_0" for name in letters]
        for kind, letters in (("relu", "ab"), ("tanh", "c"), ("sigmoid", "d"))
        for side in ("input", "output")
        if f"{kind}_{side}" in names
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, {}, id="not asked for"),
        pytest.param({"save_all": True}, put(*TYPED), id="everything"),
        pytest.param({"include_collections": TYPED}, put(*TYPED), id="all of them"),
        pytest.param(
            {"include_collections": ["relu_output", "tanh_input"]},
            put("relu_output", "tanh_input"),
            id="some",
        ),
        pytest.param(
            {"include_regex": "^a_|^c_output"},
            {
                "relu_input": ["a_input_0"],
                "relu_output": ["a_output_0"],
                "tanh_output": ["c_output_0"],
            },
            id="those that are saved for another reason",
        ),
    ],
)
def test_activations(
    tmp_path: Path, options: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    watching = hook(tmp_path, **options)
    watching.register_module(model := Activations())
    for step in range(2):
        model(rows(step))
    trial = opened(watching)
    assert members(trial) == expected
    if "include_collections" in options:
        assert trial.tensor_names() == sorted(name for names in expected.values() for name in names)
        assert {len(trial.tensor(name).steps()) for name in trial.tensor_names()} == {2}


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        pytest.param((4, 1, 6, 4), torch.float32, "input_image", id="grey"),
        pytest.param((4, 3, 6, 5), torch.float32, "input_image", id="channels first"),
        pytest.param((4, 6, 5, 3), torch.uint8, "input_image", id="channels last"),
        pytest.param((4, 8, 6, 5), torch.float32, None, id="no image"),
        pytest.param((4, 6), torch.int64, "input_sequence", id="tokens"),
        pytest.param((4, 6), torch.float32, None, id="rows"),
        pytest.param((4, 6), torch.bool, None, id="a mask"),
        pytest.param((4,), torch.int64, None, id="numbers"),
    ],
)
def test_inputs_of_a_model(
    tmp_path: Path, shape: tuple[int, ...], dtype: Any, expected: str | None
) -> None:
    watching = hook(tmp_path, save_all=True)
    watching.register_module(model := nn.Sequential(nn.Identity()))
    model(torch.ones(shape).to(dtype))
    assert members(opened(watching)) == ({expected: ["Sequential_input_0"]} if expected else {})


NAMED = {
    "labels": ["CrossEntropyLoss_input_target"],
    "predictions": ["CrossEntropyLoss_input_input"],
}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(
            lambda loss, given: loss(given, LABELS),
            {"labels": ["CrossEntropyLoss_input_1"], "predictions": ["CrossEntropyLoss_input_0"]},
            id="by position",
        ),
        pytest.param(
            lambda loss, given: loss(given, target=LABELS),
            {
                "labels": ["CrossEntropyLoss_input_target"],
                "predictions": ["CrossEntropyLoss_input_0"],
            },
            id="by position and keyword",
        ),
        pytest.param(lambda loss, given: loss(input=given, target=LABELS), NAMED, id="by keyword"),
        pytest.param(
            lambda loss, given: loss(target=LABELS, input=given), NAMED, id="turned round"
        ),
    ],
)
@pytest.mark.parametrize(
    "options",
    [{"save_all": True}, {"include_collections": ["labels", "predictions"]}],
    ids=["everything", "asked for"],
)
def test_labels_and_predictions(
    tmp_path: Path, call: Any, expected: dict[str, list[str]], options: dict[str, Any]
) -> None:
    model, loss, watching = small(), nn.CrossEntropyLoss(), hook(tmp_path, **options)
    watching.register_module(model)
    watching.register_loss(loss)
    given = model(rows(0))
    call(loss, given)
    trial = opened(watching)
    assert {name: members(trial)[name] for name in expected} == expected
    found = trial.tensor(expected["labels"][0]).value(0)
    assert found.tolist() == LABELS.tolist()
    assert trial.tensor(expected["predictions"][0]).value(0).tolist() == given.tolist()


def test_a_loss_that_is_called_twice(tmp_path: Path) -> None:
    model, loss = small(), nn.MSELoss()
    watching = hook(tmp_path, include_collections=["labels", "predictions"])
    watching.register_module(model)
    watching.register_loss(loss)
    output = model(rows(0))
    loss(output, output + 1)
    loss(output, output + 2)
    trial = opened(watching)
    assert members(trial) == {
        "labels": ["MSELoss_input_1", "MSELoss_input_3"],
        "predictions": ["MSELoss_input_0", "MSELoss_input_2"],
    }
    assert [float(trial.tensor("MSELoss_output_0").value(0))] == [1.0]
    assert [float(trial.tensor("MSELoss_output_1").value(0))] == [4.0]


def test_the_images_of_a_network(tmp_path: Path) -> None:
    watching = hook(tmp_path, include_collections=["input_image", "relu_output"])
    watching.register_module(model := net())
    model(images(0))
    trial = opened(watching)
    assert members(trial) == {
        "input_image": ["Net_input_0"],
        "relu_output": [
            *("blocks.0.act_output_0", "blocks.1.act_output_0"),
            *("relu_output_0", "relu_output_1"),
        ],
    }
    assert trial.tensor("Net_input_0").value(0).tolist() == images(0).tolist()


def test_names_of_default_collections() -> None:
    assert smd.CollectionKeys.GRADIENTS == "gradients"
    assert smd.Hook.DEFAULT_INCLUDED == ("losses",)


class Gaussian(nn.Module):
    """Two layers of one input, under given names."""

    def __init__(self, mean: str, spread: str) -> None:
        super().__init__()
        self.add_module(mean, nn.Linear(4, 2))
        self.add_module(spread, nn.Linear(4, 2))

    def forward(self, x: Any) -> Any:
        return sum(layer(x).sum() for layer in self.children())


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(("mu", "logvar"), ["mu_output_0"], id="code"),
        pytest.param(("fc_mu", "fc_var"), ["fc_mu_output_0"], id="with prefixes"),
        pytest.param(("mean_head", "log_variance"), ["mean_head_output_0"], id="with suffixes"),
        pytest.param(("mu", "sigma"), [], id="policy"),
        pytest.param(("meaning", "logvar"), [], id="other name"),
    ],
)
def test_the_preset_saves_latent_means(
    names: tuple[str, str], expected: list[str], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = Gaussian(*names)
    watching = smd.Hook(tmp_path / "trial", preset="llm")
    watching.register_module(model)
    model(torch.ones(3, 4)).backward()
    trial = opened(watching)
    assert trial.tensor_names(collection="latent_means") == expected
    assert not [name for name in trial.tensor_names() if f"{names[1]}_output" in name]
