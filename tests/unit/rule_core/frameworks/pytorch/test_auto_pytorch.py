import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hooked
import pytest
from auto_host import Host
from judging import judge

from builtin_rules import MaskedOrShiftedLabels
from builtin_rules.tensors.data.probabilities_as_logits import ProbabilitiesAsLogits
from rule_core.modes import ModeKeys
from rule_core.saving.auto_hook import numbered_path
from rule_core.trials.trial import Trial

pytest.importorskip("torch", reason="torch is not installed.")
PARAMETERS = {"gradient/Net_one.weight", "gradient/Net_two.weight"}
LOSS, CROSS_ENTROPY = "loss_output_0", "CrossEntropyLoss_output_0"
BEGIN = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8, bias=False), nn.Linear(8, 2, bias=False)
    def forward(self, x):
        return self.two(torch.tanh(self.one(x)))
def batch():
    x = torch.randn(16, 4)
    return x, (x.sum(1) > 0).long()
def train(loss, model=None, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(*batch())
        value.backward()
        optimizer.step()
    return value
net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
END = "\nprint([one.tolist() for one in net.parameters()])\n"


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host("torch._dynamo")
    yield host
    assert host.close() == 0


class Trained:
    """What came of a script."""

    def __init__(
        self, host: Host, folder: Path, text: str, *collections: str, begin: str = BEGIN
    ) -> None:
        self.root = folder / "the trial"
        script = begin + text + END
        self.code, self.out, self.err = host.run(folder, script, self.root, *collections)

    @property
    def trial(self) -> Trial:
        return hooked.opened(self.root)

    @property
    def trials(self) -> list[Trial]:
        """The trials of all trainings, in the order in which they began."""
        found = [Path(numbered_path(self.root, number)) for number in range(1, 9)]
        return [hooked.opened(root) for root in found if root.exists()]

    @property
    def counts(self) -> list[dict[str, int]]:
        """How many steps each trial has of its models' gradients."""
        return [
            {
                name.removeprefix("gradient/"): len(trial.tensor(name).steps())
                for name in trial.tensor_names(collection="gradients")
                if "two" not in name
            }
            for trial in self.trials
        ]

    def steps(self, name: str, mode: ModeKeys = ModeKeys.TRAIN) -> list[int]:
        return list(self.trial.tensor(name).steps(mode))


def test_classes_that_a_loss_compares_are_saved(host: Host, tmp_path: Path) -> None:
    text = "train(lambda x, y: F.cross_entropy(net(x), y))"
    trial = Trained(host, tmp_path, text, "losses", "classes").trial
    labels, predictions = (trial.tensor(f"classes/{side}") for side in ("labels", "predictions"))
    assert labels.steps() == predictions.steps() == [0, 1, 2, 3, 4]
    assert (labels.value(0).shape, labels.value(0).dtype) == ((16,), "int16")
    assert trial.tensor_names(collection="classes") == ["classes/labels", "classes/predictions"]


LANGUAGE = (
    BEGIN
    + """
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 9)
    def forward(self, input_ids, labels):
        logits = self.head(self.embed(input_ids))
        return F.cross_entropy(logits[:, :-1].reshape(-1, 9), labels[:, 1:].reshape(-1))
net = Language()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def tokens():
    return torch.randint(0, 9, (4, 12))
"""
)


@pytest.mark.parametrize(
    ("loss", "met"),
    [
        pytest.param("net(input_ids=(x := tokens()), labels=x)", [], id="once"),
        pytest.param(
            "net(input_ids=(x := tokens())[:, :-1], labels=x[:, 1:])", [2, 3, 4], id="twice"
        ),
        pytest.param("net((x := tokens())[:, :-1], x[:, 1:])", [2, 3, 4], id="by-position"),
    ],
)
def test_shifts_of_labels_are_seen(loss: str, met: list[int], host: Host, tmp_path: Path) -> None:
    text = f"train(lambda *_: {loss})"
    trained = Trained(host, tmp_path, text, "losses", "targets", begin=LANGUAGE)
    assert trained.trial.tensor_names(collection="targets") == [
        "targets/compared",
        "targets/counted",
        "targets/next_tokens",
        "targets/tokens_after_next",
    ]
    assert judge(MaskedOrShiftedLabels, trained.root).met == met


def test_spread_of_normalised_rows_is_saved(host: Host, tmp_path: Path) -> None:
    begin = BEGIN.replace("nn.Linear(8, 2, bias=False)", "nn.Linear(8, 8, bias=False)")
    text = """
def loss(x, y):
    rows = net(x)
    return F.cosine_similarity(rows, rows.flip(0)).mean()
train(loss)
"""
    trial = Trained(host, tmp_path, text, "losses", "embeddings", begin=begin).trial
    assert trial.tensor_names(collection="embeddings") == [
        "embeddings/0/spread",
        "embeddings/1/spread",
    ]
    assert 0 < trial.tensor("embeddings/0/spread").value(0) < 2


def test_frozen_parameters_are_saved_with_the_mode_of_the_model(host: Host, tmp_path: Path) -> None:
    text = "net.one.requires_grad_(False)\ntrain(lambda x, y: criterion(net(x), y))"
    trial = Trained(host, tmp_path, text, "losses", "model").trial
    flags = [
        int(trial.tensor(f"parameters/requires_grad/Net_{side}.weight").value(0))
        for side in ("one", "two")
    ]
    assert flags == [0, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("train(lambda x, y: F.cross_entropy(net(x), y))", {LOSS}, id="function"),
        pytest.param("train(lambda x, y: criterion(net(x), y))", {CROSS_ENTROPY}, id="module"),
        pytest.param(
            "train(lambda x, y: nn.CrossEntropyLoss()(net(x), y))", {CROSS_ENTROPY}, id="new-module"
        ),
        pytest.param(
            "train(lambda x, y: criterion(net(x), y) / 4 * 2)", {CROSS_ENTROPY}, id="multiple"
        ),
        pytest.param(
            "train(lambda x, y: criterion(net(x), y) + net.one.weight.norm())",
            {CROSS_ENTROPY, LOSS},
            id="sum",
        ),
        pytest.param(
            "train(lambda x, y: criterion(net(x), y).sqrt())",
            {CROSS_ENTROPY, LOSS},
            id="function-of",
        ),
        pytest.param(
            "train(lambda x, y: criterion(net.two(net.one(x)), y))", {CROSS_ENTROPY}, id="parts"
        ),
        pytest.param(
            "net = nn.DataParallel(net)\ntrain(lambda x, y: criterion(net(x), y))",
            {CROSS_ENTROPY},
            id="wrapped-later",
        ),
        pytest.param(
            "net = torch.compile(net, backend='eager')\n"
            "train(lambda x, y: F.cross_entropy(net(x), y))",
            {LOSS},
            id="compiled-later",
        ),
        pytest.param(
            "f = torch.compile(lambda x, y: criterion(net(x), y), backend='eager')\ntrain(f)",
            {CROSS_ENTROPY},
            id="compiled-function",
        ),
    ],
)
def test_script_is_saved_as_it_is(
    host: Host, tmp_path: Path, text: str, expected: set[str]
) -> None:
    trained = Trained(host, tmp_path, text, "gradients", "losses")
    assert (trained.code, trained.err) == (0, "")
    trial = trained.trial
    assert set(trial.tensor_names()) == PARAMETERS | expected
    for name in PARAMETERS | expected:
        assert trained.steps(name) == [0, 1, 2, 3, 4]
    assert set(trial.tensor_names(collection="losses")) == expected
    assert trial.loaded_all_steps


def test_values_are_those_of_the_training_which_stays_the_same(host: Host, tmp_path: Path) -> None:
    text = """
losses = []
def loss(x, y):
    value = F.cross_entropy(net(x), y)
    losses.append(value.item())
    return value
train(loss)
print(losses, torch.rand(3).tolist())
"""
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    trained = Trained(host, tmp_path / "with", text, "gradients", "weights", "losses")
    # Without a configuration there is no hook, which is said.
    code, out, err = host.run(tmp_path / "without", BEGIN + text + END, None)
    assert (trained.code, trained.out) == (code, out)
    assert err.startswith("rule-runner: Nothing more is saved: FileNotFoundError: ")
    saved = [float(trained.trial.tensor(LOSS).value(step)) for step in range(5)]
    assert json.loads(out.splitlines()[0].partition("]")[0] + "]") == saved


def test_loss_is_saved_without_its_scale(host: Host, tmp_path: Path) -> None:
    text = """
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
x, y = batch()
loss = F.cross_entropy(net(x), y)
scaler.scale(loss).backward()
print(loss.item())
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert float(trained.trial.tensor(LOSS).value(0)) == float(trained.out.splitlines()[0])


def test_modes_and_collections_of_a_loss(host: Host, tmp_path: Path) -> None:
    text = """
for _ in range(2):
    net.eval()
    with torch.no_grad():
        criterion(net(batch()[0]), batch()[1])
    net.train()
    train(lambda x, y: criterion(net(x), y), steps=3)
"""
    trained = Trained(host, tmp_path, text, "losses", "labels", "predictions", "input_image")
    # Nothing is saved before the training has begun.
    assert trained.steps(CROSS_ENTROPY, ModeKeys.TRAIN) == [0, 1, 2, 3, 4, 5]
    assert trained.steps(CROSS_ENTROPY, ModeKeys.EVAL) == [0]
    trial = trained.trial
    assert trial.tensor_names(collection="labels") == ["CrossEntropyLoss_input_1"]
    assert trial.tensor_names(collection="predictions") == ["CrossEntropyLoss_input_0"]


def test_small_predictions_are_saved_for_the_rules(host: Host, tmp_path: Path) -> None:
    text = """
train(lambda x, y: criterion(net(x).softmax(1), y))
criterion(torch.randn(1 << 18, 2), torch.zeros(1 << 18, dtype=torch.int64))
net(batch()[0])
criterion(torch.randn(1 << 18, 2), torch.zeros(1 << 18, dtype=torch.int64))
"""
    trained = Trained(host, tmp_path, text, "loss_inputs", "losses")
    trial, predictions = trained.trial, "CrossEntropyLoss_input_0"
    assert trained.steps(predictions) == [0, 1, 2, 3, 4]
    assert trained.steps(CROSS_ENTROPY) == [0, 1, 2, 3, 4, 5]
    assert {name for name in trial.tensor_names() if "_input" in name} == {predictions}
    rule = ProbabilitiesAsLogits(trial)
    assert [rule.invoke_at_step(step) for step in range(4)] == [False, False, True, True]


def test_loss_that_the_model_returns_is_saved_once(host: Host, tmp_path: Path) -> None:
    text = """
class WithLoss(Net):
    def forward(self, x, labels):
        return {"loss": F.cross_entropy(super().forward(x), labels)}
net = WithLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
train(lambda x, y: net(x, labels=y)["loss"] / 2)
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert trained.trial.tensor_names() == ["WithLoss_output_loss"]
    assert trained.steps("WithLoss_output_loss") == [0, 1, 2, 3, 4]


def test_inputs_of_the_first_call_are_seen(host: Host, tmp_path: Path) -> None:
    text = """
net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 2))
optimizer = torch.optim.Adam(net.parameters())
train(lambda x, y: F.cross_entropy(net(torch.ones(16, 3, 8, 8)), y))
"""
    trained = Trained(host, tmp_path, text, "input_image")
    assert trained.steps("Sequential_input_0") == [0, 1, 2, 3, 4]


def test_two_models_that_train_each_other_are_one_training(host: Host, tmp_path: Path) -> None:
    text = """
other = nn.Sequential(nn.Linear(4, 4, bias=False))
optimizer = torch.optim.SGD([*net.parameters()], lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
train(lambda x, y: criterion(net(other(x)), y))
"""
    trained = Trained(host, tmp_path, text, "gradients", "losses")
    assert trained.err == ""
    expected = {"gradient/Sequential_0.weight", *PARAMETERS, CROSS_ENTROPY}
    assert set(trained.trial.tensor_names()) == expected
    assert trained.steps("gradient/Sequential_0.weight") == [0, 1, 2, 3, 4]


def test_a_model_that_is_not_called_at_a_step_is_counted(host: Host, tmp_path: Path) -> None:
    text = """
other = nn.Sequential(nn.Linear(4, 4, bias=False))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
for _ in range(3):
    train(lambda x, y: criterion(net(x), y), steps=1)
    train(lambda x, y: criterion(net(other(x)), y), steps=1)
"""
    trial = Trained(host, tmp_path, text, "losses").trial
    assert trial.tensor("model/idle_models").steps() == [1, 3, 5]
    assert trial.tensor("model/idle_models").value(1) == 1


@pytest.mark.parametrize("context", ["torch.no_grad()", "torch.inference_mode()", "frozen()"])
def test_a_model_that_cannot_learn_is_evaluated(host: Host, tmp_path: Path, context: str) -> None:
    text = f"""
import contextlib
@contextlib.contextmanager
def frozen():
    net.requires_grad_(False)
    yield
    net.requires_grad_(True)
for _ in range(2):
    train(lambda x, y: criterion(net(x), y), steps=3)
    with {context}:
        criterion(net(batch()[0]), batch()[1])
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert trained.steps(CROSS_ENTROPY, ModeKeys.TRAIN) == [0, 1, 2, 3, 4, 5]
    assert trained.steps(CROSS_ENTROPY, ModeKeys.EVAL) == [0, 1]


def test_a_frozen_backbone_is_trained_with_its_head(host: Host, tmp_path: Path) -> None:
    text = """
class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(4, 4).requires_grad_(False), torch.nn.Linear(4, 3)
both = Both()
optimizer = torch.optim.SGD(both.head.parameters(), lr=0.1)
for _ in range(4):
    criterion(both.head(both.body(torch.randn(8, 4))), torch.randint(0, 3, (8,))).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert trained.steps(CROSS_ENTROPY, ModeKeys.TRAIN) == [0, 1, 2, 3]


def test_each_training_of_a_script_is_a_trial(host: Host, tmp_path: Path) -> None:
    text = """
for fold in range(3):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(lambda x, y: criterion(net(x), y), steps=3 + fold)
    net.eval()
    net(batch()[0])
"""
    trained = Trained(host, tmp_path, text, "gradients", "losses")
    assert (trained.code, trained.err, len(trained.trials)) == (0, "", 3)
    for fold, trial in enumerate(trained.trials):
        assert set(trial.tensor_names()) == PARAMETERS | {CROSS_ENTROPY}
        assert trial.tensor(CROSS_ENTROPY).steps() == [*range(3 + fold)]
        assert trial.loaded_all_steps


MODELS = """
nets = [net, nn.Sequential(nn.Linear(4, 2, bias=False)), nn.Sequential(nn.Linear(4, 2))]
optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in nets]
def turn(at, steps):
    global optimizer
    optimizer = optimizers[at]
    train(lambda x, y: criterion(nets[at](x), y), steps=steps)
"""


def test_models_that_are_made_first_and_trained_one_by_one(host: Host, tmp_path: Path) -> None:
    text = MODELS + "for at in range(3):\n    turn(at, 20)"
    trained = Trained(host, tmp_path, text, "gradients")
    # What the first calls of a further model belong to is not known yet.
    first, second, third = trained.counts
    assert (first["Net_one.weight"], second["Sequential_0.weight"]) == (20, 4)
    assert third["Sequential_0.bias"] == 4


def test_models_that_are_trained_in_turns_have_a_trial_each(host: Host, tmp_path: Path) -> None:
    text = MODELS + "for turns in range(3):\n    for at in range(3):\n        turn(at, 20)"
    trained = Trained(host, tmp_path, text, "gradients")
    assert (trained.code, trained.err, len(trained.trials)) == (0, "", 3)
    assert len(trained.trials[-1].steps()) == 4 + 6 * 4


def test_optimizer_that_is_made_late_joins_a_training(host: Host, tmp_path: Path) -> None:
    text = """
train(lambda x, y: criterion(net(x), y))
head = nn.Linear(2, 2, bias=False)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
train(lambda x, y: criterion(head(net(x)), y))
"""
    trained = Trained(host, tmp_path, text, "gradients")
    assert trained.counts == [{"Net_one.weight": 10, "Linear_weight": 4}]


def test_models_with_late_optimizers_of_their_own_are_saved_together(
    host: Host, tmp_path: Path
) -> None:
    text = """
train(lambda x, y: criterion(net(x), y))
head = nn.Linear(2, 2, bias=False)
other = torch.optim.SGD(head.parameters(), lr=0.1)
train(lambda x, y: criterion(head(net(x)), y))
"""
    trained = Trained(host, tmp_path, text, "gradients")
    assert [len(one) for one in trained.counts] == [1, 2]
    assert trained.counts[1]["Linear_weight"] == 5


def test_model_around_a_trained_one_is_a_training_of_its_own(host: Host, tmp_path: Path) -> None:
    text = """
train(lambda x, y: criterion(net(x), y))
tuned = nn.Sequential(net, nn.Linear(2, 2, bias=False))
optimizer = torch.optim.SGD(tuned.parameters(), lr=0.1)
train(lambda x, y: criterion(tuned(x), y), steps=3)
"""
    trained = Trained(host, tmp_path, text, "gradients")
    assert trained.counts == [
        {"Net_one.weight": 5},
        {"Sequential_0.one.weight": 3, "Sequential_1.weight": 3},
    ]


def test_processes_that_are_forked_to_train_are_saved(host: Host, tmp_path: Path) -> None:
    text = """
import torch.multiprocessing as mp
def fold(at):
    train(lambda x, y: criterion(net(x), y), steps=3 + at)
for at in range(2):
    process = mp.get_context("fork").Process(target=fold, args=(at,))
    process.start()
    process.join()
"""
    trained = Trained(host, tmp_path, text, "gradients")
    trials = trained.trials
    assert (trained.code, trained.err) == (0, "")
    assert [len(one.steps()) for one in trials] == [3, 4]
    assert all(one.loaded_all_steps for one in trials)


def test_trainings_beyond_the_limit_are_named(host: Host, tmp_path: Path) -> None:
    text = """
import rule_core.saving.auto_hook
rule_core.saving.auto_hook.MOST_TRAININGS = 2
for fold in range(4):
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(lambda x, y: criterion(net(x), y), steps=2)
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert trained.err == (
        "rule-runner: The script trains more than 2 times: the rest is not saved.\n"
    )
    assert [one.steps() for one in trained.trials] == [[0, 1], [0, 1]]


def test_new_optimizer_of_the_same_model_goes_on(host: Host, tmp_path: Path) -> None:
    text = """
train(lambda x, y: criterion(net(x), y))
optimizer = torch.optim.Adam(net.parameters())
train(lambda x, y: criterion(net(x), y))
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert (trained.err, trained.steps(CROSS_ENTROPY)) == ("", list(range(10)))


def test_losses_of_what_is_not_counted_do_not_pile_up(host: Host, tmp_path: Path) -> None:
    text = """
train(lambda x, y: criterion(net(x), y), steps=1)
for _ in range(100):
    criterion(torch.zeros(2, 2), torch.zeros(2).long())
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert len(trained.trial.tensor_names()) == 17


def test_loop_without_an_optimizer_is_saved_from_its_second_step(
    host: Host, tmp_path: Path
) -> None:
    text = """
for _ in range(5):
    x, y = batch()
    net.zero_grad()
    F.cross_entropy(net(x), y).backward()
"""
    begin, _, _ = BEGIN.partition("optimizer = torch")
    trained = Trained(host, tmp_path, text, "gradients", "losses", begin=begin)
    assert (trained.code, trained.err) == (0, "")
    assert trained.steps(LOSS) == trained.steps("gradient/Net_two.weight") == [0, 1, 2, 3]


def test_model_whose_optimizer_has_another_models_parameters_is_saved(
    host: Host, tmp_path: Path
) -> None:
    text = "net = Net()\ntrain(lambda x, y: criterion(net(x), y), steps=20)"
    trained = Trained(host, tmp_path, text)
    assert trained.steps(CROSS_ENTROPY) == [0, 1, 2, 3]


def test_further_loop_without_an_optimizer_is_a_trial_of_its_own(
    host: Host, tmp_path: Path
) -> None:
    text = """
for _ in range(2):
    net = Net()
    for _ in range(40):
        x, y = batch()
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
"""
    begin, _, _ = BEGIN.partition("optimizer = torch")
    trained = Trained(host, tmp_path, text, "gradients", begin=begin)
    assert (trained.code, trained.err) == (0, "")
    assert [one["Net_one.weight"] for one in trained.counts] == [39, 25]


def test_hook_of_the_script_is_left_alone(host: Host, tmp_path: Path) -> None:
    text = """
import smdebug.pytorch as smd
hook = smd.Hook("own", save_config=smd.SaveConfig(save_interval=1))
hook.register_module(net)
train(lambda x, y: F.cross_entropy(net(x), y))
"""
    trained = Trained(host, tmp_path, text, "gradients", "losses")
    assert (trained.code, trained.err, trained.root.exists()) == (0, "", False)
    assert (tmp_path / "own").exists()


def test_hook_that_the_script_makes_late_ends_ours(host: Host, tmp_path: Path) -> None:
    text = """
import smdebug.pytorch as smd
train(lambda x, y: F.cross_entropy(net(x), y))
hook = smd.Hook("own", save_config=smd.SaveConfig(save_interval=1), include_regex="gradient")
hook.register_module(net)
train(lambda x, y: F.cross_entropy(net(x), y), steps=2)
"""
    trained = Trained(host, tmp_path, text, "gradients")
    assert trained.err == (
        "rule-runner: The script creates its own hook: rule-runner saves nothing more.\n"
    )
    assert trained.steps("gradient/Net_one.weight") == [0, 1, 2, 3, 4]
    assert hooked.opened(tmp_path / "own").steps() == [0, 1]


def test_script_that_asks_for_the_hook_gets_ours(host: Host, tmp_path: Path) -> None:
    text = """
import smdebug.pytorch as smd
train(lambda x, y: F.cross_entropy(net(x), y))
hook = smd.get_hook(create_if_not_exists=True)
hook.register_module(net)
hook.save_scalar("rate", 0.1)
train(lambda x, y: F.cross_entropy(net(x), y))
"""
    trained = Trained(host, tmp_path, text, "weights")
    expected = {"Net_one.weight", "Net_two.weight", LOSS, "scalar/rate"}
    assert set(trained.trial.tensor_names()) == expected


def test_processes_that_load_data_write_nothing(host: Host, tmp_path: Path) -> None:
    text = """
from torch.utils.data import DataLoader
data = [batch() for _ in range(4)]
for x, y in DataLoader(data, batch_size=None, num_workers=2):
    train(lambda *_: F.cross_entropy(net(x), y), steps=1)
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert (trained.code, trained.err, trained.trial.workers()) == (0, "", ["worker_0"])


def test_whole_graph_is_compiled_as_ever_and_said(host: Host, tmp_path: Path) -> None:
    text = """
net = torch.compile(net, backend="eager", fullgraph=True)
train(lambda x, y: F.cross_entropy(net(x), y))
"""
    trained = Trained(host, tmp_path, text, "losses")
    assert (trained.code, trained.root.exists()) == (0, False)
    assert trained.err.startswith("rule-runner: A model is compiled as one whole graph, in which")


def test_script_that_only_asks_a_model_writes_nothing(host: Host, tmp_path: Path) -> None:
    text = "net.eval()\nwith torch.no_grad():\n    net(batch()[0])"
    trained = Trained(host, tmp_path, text, "losses")
    assert (trained.code, trained.err, trained.root.exists()) == (0, "", False)


def test_trial_that_is_there_turns_the_hook_off(host: Host, tmp_path: Path) -> None:
    text = "train(lambda x, y: F.cross_entropy(net(x), y))"
    first = Trained(host, tmp_path, text, "losses")
    (tmp_path / "trainings").unlink()
    second = Trained(host, tmp_path, text, "losses")
    assert (second.code, second.out) == (0, first.out)
    assert second.err.startswith("rule-runner: Nothing more is saved: SMDebugRuntimeError: ")


def test_log_of_the_script_is_its_own(host: Host, tmp_path: Path) -> None:
    text = """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(name)s")
logging.getLogger("mine").info("")
train(lambda x, y: F.cross_entropy(net(x), y))
"""
    trained: Any = Trained(host, tmp_path, text, "losses")
    assert trained.out.splitlines()[0] == "mine"
    assert "smdebug" not in trained.out
