"""torch.compile beside a PyTorch hook, in every order: what is saved, and what is said."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch_models import LABELS, array, hook, nn, opened, rows

torch = pytest.importorskip("torch", reason="torch is not installed.")
# Of PyTorch's own, while it traces what a graph break left open.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
WHOLE = (
    "A model is compiled as one whole graph, in which nothing can be seen. Compile it first, and "
    "register what torch.compile returned."
)
PARAMETERS = [f"Two_{at}.{kind}" for at in ("first", "second") for kind in ("bias", "weight")]
GRADIENTS = [f"gradient/{name}" for name in PARAMETERS]
OUTER = ["Two_input_0", "Two_output_0"]
LOSS = [f"CrossEntropyLoss_{one}" for one in ("input_0", "input_1", "output_0")]
INNER = [f"{at}_{side}_0" for at in ("act", "first", "second") for side in ("input", "output")]
ALL = sorted(PARAMETERS + GRADIENTS + OUTER + LOSS + INNER)


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    yield
    torch.compiler.reset()


class Two(nn.Module):
    """Two layers and an activation."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.act, self.second = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.second(self.act(self.first(x)))


def after(model: Any, register: Any, **options: Any) -> Any:
    """Compile what is registered."""
    register(model)
    return torch.compile(model, **options)


def before(model: Any, register: Any, **options: Any) -> Any:
    """Register what is compiled."""
    compiled = torch.compile(model, **options)
    register(compiled)
    return compiled


def in_place_after(model: Any, register: Any, **options: Any) -> Any:
    """Compile the registered model in place."""
    register(model)
    model.compile(**options)
    return model


def in_place_before(model: Any, register: Any, **options: Any) -> Any:
    """Register a model that was compiled in place."""
    model.compile(**options)
    register(model)
    return model


def inner(model: Any, register: Any, **options: Any) -> Any:
    """Compile a part of the registered model."""
    model.act = torch.compile(model.act, **options)
    register(model)
    return model


def saved(root: Path, order: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Train two steps; return the trial and the last step's own outputs, loss and gradients."""
    model, loss, watching = Two(), nn.CrossEntropyLoss(), hook(root, save_all=True)
    called = order(model, watching.register_module, **options)
    watching.register_loss(loss)
    found: dict[str, Any] = {}
    for step in range(2):
        model.zero_grad()
        output = called(rows(step))
        value = loss(output, LABELS)
        value.backward()
        found = {"Two_output_0": output, "CrossEntropyLoss_output_0": value}
        found |= {f"Two_{name}": one for name, one in model.named_parameters()}
        found |= {f"gradient/Two_{name}": one.grad for name, one in model.named_parameters()}
    return opened(watching), {name: array(one) for name, one in found.items()}


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        one.getMessage()
        for one in caplog.records
        if one.name.startswith("smdebug") and one.levelno >= logging.WARNING
    ]


def unseen(count: int, first: str) -> str:
    return (
        f"Inputs and outputs of {count} of its modules are not seen, since they run in compiled "
        f"code; the first of them is {first!r}."
    )


@pytest.mark.parametrize(
    ("order", "names", "warnings"),
    [
        pytest.param(after, ALL, [], id="registered, then compiled"),
        pytest.param(
            before,
            sorted(set(ALL) - set(INNER)),
            [unseen(3, "first")],
            id="compiled, then registered",
        ),
        pytest.param(
            in_place_after,
            sorted(set(ALL) - set(INNER)),
            [unseen(3, "first")],
            id="registered, then compiled in place",
        ),
        pytest.param(
            in_place_before,
            sorted(set(ALL) - set(INNER)),
            [unseen(3, "first")],
            id="compiled in place, then registered",
        ),
        pytest.param(inner, ALL, [], id="a part compiled"),
    ],
)
def test_what_is_saved(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    order: Any,
    names: list[str],
    warnings: list[str],
) -> None:
    trial, expected = saved(tmp_path, order, backend="eager")
    assert said(caplog) == warnings
    assert trial.steps() == [0, 1]
    for step in (0, 1):
        assert trial.tensor_names(step=step) == names
    for name, value in expected.items():
        assert trial.tensor(name).value(1) == pytest.approx(value, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    ("order", "warnings"), [(after, [WHOLE]), (in_place_after, [WHOLE, unseen(3, "first")])]
)
def test_one_whole_graph_has_no_room_for_a_hook(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, order: Any, warnings: list[str]
) -> None:
    trial, _ = saved(tmp_path, order, backend="eager", fullgraph=True)
    assert said(caplog) == warnings
    assert trial.tensor_names() == []


def test_one_whole_graph_that_was_compiled_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial, expected = saved(tmp_path, before, backend="eager", fullgraph=True)
    assert said(caplog) == [unseen(3, "first")]
    assert trial.steps() == [0, 1]
    for name, value in expected.items():
        assert trial.tensor(name).value(1) == pytest.approx(value, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("order", [before, after])
@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.nightly)]
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_gradients_of_compiled_code(tmp_path: Path, order: Any, backend: str) -> None:
    trial, expected = saved(tmp_path, order, backend=backend)
    for name in (*GRADIENTS, *OUTER[1:], *LOSS[2:]):
        assert trial.tensor(name).value(1) == pytest.approx(expected[name], rel=1e-4, abs=1e-6)


def test_a_compiled_loss(tmp_path: Path) -> None:
    loss, watching = nn.MSELoss(), hook(tmp_path)
    compiled = torch.compile(loss, backend="eager")
    watching.register_loss(compiled)
    values = [compiled(rows(step), rows(step + 1)).item() for step in range(2)]
    trial = opened(watching)
    assert [float(trial.tensor("MSELoss_output_0").value(step)) for step in (0, 1)] == values


def dot_product(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Attention by a function that a preset patches."""
    return nn.functional.scaled_dot_product_attention(query, key, value)


class Attending(nn.Module):
    """Layers that attend."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        heads = self.first(x)[None, None]
        return self.last(dot_product(heads, heads, heads)[0, 0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("order", [before, after])
def test_preset_beside_compiled_attention(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, order: Any
) -> None:
    model, original = Attending(), nn.functional.scaled_dot_product_attention
    watching = hook(tmp_path, preset="llm")
    called = order(model, watching.register_module, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    norms = []
    for step in range(3):
        optimizer.zero_grad()
        called(rows(step)).square().sum().backward()
        norms.append(float(torch.cat([one.grad.flatten() for one in model.parameters()]).norm()))
        optimizer.step()
    heads = [torch.randn(1, 1, 3, 4)] * 3
    torch.jit.script(dot_product)(*heads)
    torch.export.export(Attending(), (rows(0),))
    assert not watching.is_off
    trial = opened(watching)
    assert nn.functional.scaled_dot_product_attention is original
    assert [float(trial.tensor("optimizer/grad_norm").value(step)) for step in range(3)] == (
        pytest.approx(norms, rel=1e-5)
    )
    assert trial.tensor_names(collection="attention") == []
    assert len(said(caplog)) == (1 if order is before else 0)
