"""smdebug 1.0.34's own PyTorch hook and ours, on one seeded training: what differs, exactly."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from trial_content import content

import smdebug
from smdebug import modes
from smdebug.trials import Trial, create_trial

PYTHON = os.environ.get("RULE_RUNNER_OLD_SMDEBUG_PYTHON", "")
SCRIPTS = Path(__file__).parents[1] / "old_library"
HERE = str(Path(smdebug.__file__).parents[1])
CASES = ("everything", "defaults", "collections", "reductions")
READ = """
import json, sys
sys.path.insert(0, sys.argv[1])
from read_trial import main
print(json.dumps([main(path) for path in sys.argv[2:]]))
"""
PARAMETERS = [
    f"Net_{name}"
    for name in (
        *(
            f"{layer}.{kind}"
            for layer in ("blocks.0.fc", "blocks.1.fc")
            for kind in ("bias", "weight")
        ),
        *(f"{layer}.{kind}" for layer in ("conv", "head") for kind in ("bias", "weight")),
        *(f"lstm.{kind}_{part}_l0" for kind in ("bias", "weight") for part in ("hh", "ih")),
    )
]
RELU = {side: [f"relu_{side}_{call}" for call in (0, 1)] for side in ("input", "output")}
ACT = {side: [f"blocks.{at}.act_{side}_0" for at in (0, 1)] for side in ("input", "output")}


@dataclass(frozen=True, slots=True)
class Difference:
    """A reason for which tensors are members of a collection in our trials only, by case."""

    reason: str
    members: dict[str, dict[str, list[str]]]


OF_MEMBERS = (
    Difference(
        "what save_tensor saves is a member of the collection that it names, from its first step",
        {case: {"default": ["own"]} for case in CASES},
    ),
    Difference(
        "a collection lists every saved tensor that its patterns match, whoever saved it",
        {
            "everything": {"all": ["own", "scalar/after", "scalar/before"]},
            "reductions": {
                kind: sorted(name for name in PARAMETERS if part in name)
                for kind, part in (("biases", "bias"), ("weights", "weight"))
            },
        },
    ),
    Difference(
        "collections of what a module is or does are filled by its class and place",
        {
            "everything": {
                "input_image": ["Net_input_0"],
                "labels": ["CrossEntropyLoss_input_1"],
                "predictions": ["CrossEntropyLoss_input_0"],
                "relu_input": sorted(ACT["input"] + RELU["input"]),
                "relu_output": sorted(ACT["output"] + RELU["output"]),
            },
            "reductions": {
                "input_image": ["Net_input_0"],
                "relu_input": RELU["input"],
                "relu_output": RELU["output"],
            },
        },
    ),
)
# What save_tensor saves belongs to the step at which it is called; the old hook writes it at the
# next step that is saved, and not at all where its collection is reduced.
OWN = "own"
OWN_STEPS = {
    "everything": (list(range(1, 9)), list(range(9))),
    "defaults": ([2, 3, 5, 7], [0, 2, 3, 5, 7]),
    "collections": (list(range(1, 9)), list(range(9))),
    "reductions": ([], list(range(9))),
}
# With the population's number of elements, as numpy and our other hooks have it; the old hook takes
# torch's default, one less.
BY_DEGREES: dict[str, Callable[[float], float]] = {"variance": lambda x: x, "std": np.sqrt}

pytestmark = [
    pytest.mark.old_library,
    pytest.mark.skipif(
        not PYTHON,
        reason="RULE_RUNNER_OLD_SMDEBUG_PYTHON does not name a Python that has smdebug 1.0.34.",
    ),
]
pytest.importorskip("torch", reason="torch is not installed.")


def run(python: str, *arguments: str, path: str | None = None) -> str:
    """Run a script with an interpreter and return what it prints."""
    env = {"PATH": os.environ["PATH"]} | ({"PYTHONPATH": path} if path else {})
    done = subprocess.run(
        [python, *arguments], capture_output=True, check=False, env=env, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the trials of both hooks; one process trains all cases of a hook."""
    has_torch = "import importlib.util as u; print(u.find_spec('torch') is not None)"
    if run(PYTHON, "-c", has_torch).strip() != "True":
        pytest.skip("The Python that has smdebug 1.0.34 has no torch.")
    root = tmp_path_factory.mktemp("trials")
    script = str(SCRIPTS / "train_pytorch.py")
    run(PYTHON, script, str(root / "old"), *CASES)
    run(sys.executable, script, str(root / "new"), *CASES, path=HERE)
    return root


@pytest.fixture(params=CASES)
def trials(
    request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Trial, Trial]:
    """The case, the old hook's trial, and ours."""
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    old, new = (create_trial(root / hook / request.param, timeout=0) for hook in ("old", "new"))
    return request.param, old, new


def test_steps_and_modes(trials: tuple[str, Trial, Trial]) -> None:
    _, old, new = trials
    assert old.steps() == new.steps()
    for mode in (modes.TRAIN, modes.EVAL):
        assert old.steps(mode) == new.steps(mode)
        assert old.steps(mode)
    for step in old.steps():
        assert old.mode_modestep(step) == new.mode_modestep(step)


def test_names_at_each_step(trials: tuple[str, Trial, Trial]) -> None:
    case, old, new = trials
    for step in old.steps():
        names = [set(trial.tensor_names(step=step)) - {OWN} for trial in (old, new)]
        assert names[0] == names[1]
    found = tuple(
        trial.tensor(OWN).steps() if OWN in trial.tensor_names() else [] for trial in (old, new)
    )
    assert found == OWN_STEPS[case]


def test_values(trials: tuple[str, Trial, Trial]) -> None:
    _, old, new = trials
    compared = 0
    for name in set(new.tensor_names()) - {OWN}:
        saved = old.tensor(name)
        for step in saved.steps():
            if saved.reduction_values(step):
                continue
            theirs, ours = saved.value(step), new.tensor(name).value(step)
            assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
            np.testing.assert_array_equal(theirs, ours, err_msg=f"{name} at {step}")
            compared += 1
    assert compared


def test_reductions(trials: tuple[str, Trial, Trial]) -> None:
    case, old, new = trials
    compared = 0
    for name in set(new.tensor_names()) - {OWN}:
        for step in old.tensor(name).steps():
            theirs = old.tensor(name).reduction_values(step)
            ours = new.tensor(name).reduction_values(step)
            assert set(theirs) == set(ours)
            for key, value in theirs.items():
                assert (value.dtype, value.shape) == (ours[key].dtype, ours[key].shape)
                if key[0] not in BY_DEGREES:
                    np.testing.assert_allclose(ours[key], value, rtol=1e-5, atol=1e-7)
                    compared += 1
    assert bool(compared) == (case == "reductions")


def test_spread_is_that_of_the_population(trials: tuple[str, Trial, Trial]) -> None:
    case, old, new = trials
    if case != "reductions":
        return
    sizes = {"Net_conv.bias": 2, "Net_head.weight": 24, "relu_output_1": 32, "Net_input_0": 96}
    for name, size in sizes.items():
        for reduction, of_ratio in BY_DEGREES.items():
            theirs = old.tensor(name).reduction_value(0, reduction)
            ours = new.tensor(name).reduction_value(0, reduction)
            np.testing.assert_allclose(ours, theirs * of_ratio((size - 1) / size), rtol=1e-5)


def test_members_of_collections(trials: tuple[str, Trial, Trial]) -> None:
    case, old, new = trials
    theirs, ours = (
        {name: set(one.tensor_names) for name, one in trial.collections().items()}
        for trial in (old, new)
    )
    expected = {name: set(members) for name, members in theirs.items()}
    for difference in OF_MEMBERS:
        for name, members in difference.members.get(case, {}).items():
            assert not expected.get(name, set()).intersection(members), difference.reason
            expected[name] = expected.get(name, set()).union(members)
    assert ours == expected


def test_the_old_library_reads_ours(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    paths = [str(root / "new" / case) for case in CASES]
    theirs = json.loads(run(PYTHON, "-P", "-c", READ, str(SCRIPTS), *paths).splitlines()[-1])
    trials = [create_trial(path, timeout=0) for path in paths]
    ours = [content(trial, dict(modes.__members__)) for trial in trials]
    assert theirs == json.loads(json.dumps(ours))
