"""What a PyTorch hook calls the tensors of unusual calls, models and losses."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_models import LABELS, array, assert_same, hook, nn, opened, read, rows, small

torch = pytest.importorskip("torch", reason="torch is not installed.")

from rule_core.frameworks.pytorch.hook import Hook


class Keywords(nn.Module):
    """Takes keywords, and returns a scripted value."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result

    def forward(self, x: Any, *, mask: Any, more: Any = None) -> Any:
        del x, mask, more  # the hook sees them
        return self.result


ONE, TWO = torch.ones(1), torch.full((2,), 2.0)


@pytest.mark.parametrize(
    ("result", "names"),
    [
        pytest.param(None, [], id="nothing"),
        pytest.param((ONE, [TWO, None]), ["_0", "_1"], id="nested sequences"),
        pytest.param({"a": ONE, "b": {"c": TWO}}, ["_a", "_b_c"], id="mappings"),
        pytest.param({"a": [ONE, TWO]}, ["_a", "_a_1"], id="a sequence in a mapping"),
        pytest.param(
            torch.return_types.max((ONE, TWO)), ["_0", "_1"], id="a named tuple of PyTorch's"
        ),
    ],
)
def test_keywords_in_and_structures_out(tmp_path: Path, result: Any, names: list[str]) -> None:
    model, watching = Keywords(result), hook(tmp_path, save_all=True)
    watching.register_module(model)
    model(ONE, mask=TWO, more={"deep": [ONE]})
    found = read(opened(watching), 0)
    expected = {f"Keywords_output{one}": v for one, v in zip(names, (ONE, TWO), strict=False)}
    inputs = {"Keywords_input_0": ONE, "Keywords_input_mask": TWO, "Keywords_input_more_deep": ONE}
    assert_same({name: array(one) for name, one in (expected | inputs).items()}, found)


def test_an_overridden_forward_hook_is_called_and_saves_what_it_writes(tmp_path: Path) -> None:
    class Custom(Hook):
        def forward_hook(self, module: Any, inputs: Any, outputs: Any) -> None:
            name = self.module_maps[module]
            assert module._module_name == name
            outputs.register_hook(self.backward_hook(f"{name}_output"))
            if isinstance(module, nn.BatchNorm1d):
                self._write_outputs(f"{name}.running_mean", module.running_mean)
                super().forward_hook(module, inputs, outputs)

    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    watching = Custom(tmp_path, save_all=True, on_error="raise")
    watching.register_module(model)
    model(torch.eye(2)).sum().backward()
    written = {name for name in read(opened(watching), 0) if "Sequential_" not in name}
    assert written == {
        *("1.running_mean_output_0", "1_input_0", "1_output_0"),
        *("gradient/0_output", "gradient/1_output"),
    }


def test_an_error_of_an_overridden_forward_hook_does_not_break_the_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Custom(Hook):
        def forward_hook(self, module: Any, inputs: Any, outputs: Any) -> None:
            raise KeyError(module, inputs, outputs)

    model = nn.Linear(2, 2)
    Custom(tmp_path, save_all=True).register_module(model)
    model(torch.eye(2)).sum().backward()
    assert "The hook is off for the rest of the training job: KeyError" in caplog.text


def test_a_dataclass_out(tmp_path: Path) -> None:
    @dataclasses.dataclass
    class Output:
        logits: Any
        count: int = 3

    model, watching = Keywords(Output(TWO)), hook(tmp_path, include_regex="output")
    watching.register_module(model)
    model(ONE, mask=TWO)
    assert_same({"Keywords_output_logits": array(TWO)}, read(opened(watching), 0))


@pytest.mark.parametrize("key", ["a/b", "q'\"", "ä✓ x", "//up", "new\nline"])
def test_names_of_modules_are_kept_as_they_are(tmp_path: Path, key: str) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.parts = nn.ModuleDict({key: nn.Linear(4, 2)})

        def forward(self, x: Any) -> Any:
            return self.parts[key](x)

    model, watching = Named(), hook(tmp_path, save_all=True)
    watching.register_module(model)
    output = model(rows(0))
    output.sum().backward()
    found = read(opened(watching), 0)
    layer = model.parts[key]
    expected = {
        f"parts.{key}_output_0": output,
        f"Named_parts.{key}.weight": layer.weight,
        f"gradient/Named_parts.{key}.bias": layer.bias.grad,
    }
    assert_same(
        {name: array(one) for name, one in expected.items()}, {n: found[n] for n in expected}
    )


def test_a_module_that_calls_itself(tmp_path: Path) -> None:
    class Again(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Any, more: int = 2) -> Any:
            return self.inner(x, more)

        def inner(self, x: Any, more: int) -> Any:
            return x if not more else self.inner(self.fc(x), more - 1)

    torch.manual_seed(0)
    model, watching = Again(), hook(tmp_path, include_regex="fc_output")
    watching.register_module(model)
    once = model.fc(rows(0))
    twice = model.fc(once)
    model(rows(0))
    found = read(opened(watching), 0)
    assert_same({"fc_output_0": array(once), "fc_output_1": array(twice)}, found)


def test_several_models_and_the_first_counts_the_steps(tmp_path: Path) -> None:
    maker, judge = small(0), small(1)
    watching = hook(tmp_path, save_all=True)
    watching.register_module(maker)
    watching.register_module(judge)
    made = [maker(rows(step)) for step in range(2) if judge(rows(step)) is not None]
    trial = opened(watching)
    assert trial.steps() == [0, 1]
    # The judge is asked before the first step has begun, and again within it.
    np.testing.assert_array_equal(trial.tensor("Sequential_output_0").value(0), array(made[0]))
    np.testing.assert_array_equal(
        trial.tensor("Sequential:1_output_0").value(0), array(judge(rows(1)))
    )
    np.testing.assert_array_equal(
        trial.tensor("Sequential:1.0_output_0").value(0), array(judge[0](rows(1)))
    )
    np.testing.assert_array_equal(
        trial.tensor("Sequential:1_0.weight").value(1), array(judge[0].weight)
    )


def test_a_loss_alone_counts_the_steps(tmp_path: Path) -> None:
    loss, watching = nn.MSELoss(), hook(tmp_path)
    watching.register_loss(loss)
    watching.register_loss(loss)
    values = [float(loss(rows(step), rows(step + 1))) for step in range(3)]
    trial = opened(watching)
    assert trial.steps() == [0, 1, 2]
    assert [float(trial.tensor("MSELoss_output_0").value(step)) for step in range(3)] == values


@pytest.mark.parametrize("with_model", [True, False])
def test_a_loss_that_is_a_function(tmp_path: Path, with_model: bool) -> None:
    model, watching = small(), hook(tmp_path)
    if with_model:
        watching.register_module(model)
    values = []
    for step in range(3):
        loss = nn.functional.nll_loss(model(rows(step)).log_softmax(1), LABELS)
        watching.record_tensor_value("nll_loss", loss)
        values.append(loss.item())
    trial = opened(watching)
    assert trial.tensor_names(collection="losses") == ["nll_loss_output_0"]
    assert [float(trial.tensor("nll_loss_output_0").value(step)) for step in range(3)] == values


class SoftTargetCrossEntropy(nn.Module):
    """A loss whose class is not called one; with `parts` it also returns a number."""

    def __init__(self, reduction: str = "mean", parts: bool = False) -> None:
        super().__init__()
        self.reduction, self.parts = reduction, parts

    def forward(self, logits: Any, target: Any) -> Any:
        each = nn.functional.cross_entropy(logits, target, reduction=self.reduction)
        error = (logits.argmax(1) != target).float().mean()
        return {"total": each, "class_error": error} if self.parts else each


@pytest.mark.parametrize(
    ("criterion", "name"),
    [
        pytest.param(SoftTargetCrossEntropy(), "SoftTargetCrossEntropy_output_0", id="mean"),
        pytest.param(SoftTargetCrossEntropy("none"), "SoftTargetCrossEntropy_output_0", id="each"),
        pytest.param(
            SoftTargetCrossEntropy(parts=True), "SoftTargetCrossEntropy_output_total", id="parts"
        ),
    ],
)
def test_registered_loss_whose_class_lacks_loss_is_saved(
    tmp_path: Path, criterion: Any, name: str
) -> None:
    model, watching = small(), hook(tmp_path)
    watching.register_module(model)
    watching.register_loss(criterion)
    for step in range(3):
        criterion(model(rows(step)), LABELS)
    trial = opened(watching)
    assert trial.tensor_names() == trial.tensor_names(collection="losses") == [name]
    assert trial.tensor(name).steps() == [0, 1, 2]


def test_loss_of_an_evaluation_alone_is_saved(tmp_path: Path) -> None:
    criterion, watching = SoftTargetCrossEntropy(), hook(tmp_path)
    watching.register_loss(criterion)
    with torch.no_grad():
        criterion(rows(0), LABELS)
    trial = opened(watching)
    assert trial.tensor_names(collection="losses") == ["SoftTargetCrossEntropy_output_0"]


def test_recorded_value_is_a_loss_if_a_backward_can_start_from_it(tmp_path: Path) -> None:
    model, watching = small(), hook(tmp_path)
    watching.register_module(model)
    logits = model(rows(0))
    watching.record_tensor_value("nll", nn.functional.cross_entropy(logits, LABELS))
    watching.record_tensor_value("accuracy", (logits.argmax(1) == LABELS).float().mean())
    assert opened(watching).tensor_names() == ["nll_output_0"]


@pytest.mark.parametrize("method", ["register_module", "register_hook", "register_loss"])
def test_what_is_no_module(tmp_path: Path, method: str) -> None:
    with pytest.raises(TypeError, match=r"must be a torch.nn.Module, got <function relu at "):
        getattr(hook(tmp_path), method)(nn.functional.relu)


def test_a_model_inside_dataparallel_has_its_plain_names(tmp_path: Path) -> None:
    names = {}
    for wrap in (nn.Identity, nn.DataParallel):
        plain = small()
        model = plain if wrap is nn.Identity else wrap(plain)
        watching = hook(tmp_path / wrap.__name__, save_all=True)
        watching.register_module(model)
        model(rows(0)).sum().backward()
        names[wrap] = opened(watching).tensor_names()
    assert names[nn.DataParallel] == names[nn.Identity]
    assert "gradient/Sequential_2.bias" in names[nn.Identity]
