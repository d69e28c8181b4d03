"""demo: trainings are real, their verdicts are right, and what goes wrong is one sentence."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved
from click.testing import CliRunner

from rule_runner.cli import main
from rule_runner.commands.demo import command as demo
from rule_runner.commands.demo import training as demo_training
from rule_runner.commands.demo.command import Scenario
from rule_runner.commands.demo.training import Network, cross_entropy, draw, glyphs, initialised
from rule_runner.config.model import EvaluationConfig
from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.engine.runner import Runner
from rule_runner.engine.stop_requests import StopReason
from rule_runner.errors import ClientError, OutputError
from rule_runner.logs import configure
from rule_runner.report.progress import LogObserver
from rule_runner.steps.watcher import TrialWatcher
from smdebug.core.modes import ModeKeys
from smdebug.trials import create_trial

ROOT = Path(__file__).parents[5]
PROGRAM = [sys.executable, "-m", "rule_runner"]
QUICK = Scenario("quick", "one small layer", ("--hidden", "4", "--steps=2"), {})


@pytest.fixture(autouse=True)
def _log_to_stderr() -> None:
    configure(0)


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}


@pytest.mark.merge
def test_the_demo_judges_three_real_trainings(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "demo", "--output", "a demo"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = {
        (folder.name, name): result
        for folder in (tmp_path / "a demo" / "results").iterdir()
        for name, result in saved.results(folder).items()
    }
    outcomes = {place: result["outcome"] for place, result in found.items()}
    assert len(outcomes) == 12
    assert {one for place, one in outcomes.items() if place[0] == "healthy"} == {"NoIssuesFound"}
    assert outcomes["deep-sigmoid", "VanishingGradient"] == "IssuesFound"
    assert outcomes["deep-sigmoid", "ExplodingTensor"] == "NoIssuesFound"
    assert outcomes["deep-sigmoid", "AllZero"] == "NoIssuesFound"
    assert outcomes["diverging", "ExplodingTensor"] == "IssuesFound"
    assert outcomes["diverging", "VanishingGradient"] == "NoIssuesFound"
    evidence = found["deep-sigmoid", "VanishingGradient"]["evidence"][0]
    assert evidence["measured"] < evidence["limit"] == 1e-7
    assert f"VanishingGradient: IssuesFound at step {evidence['step']}" in done.stdout
    _check_what_is_printed(done.stdout, tmp_path)


def _check_what_is_printed(text: str, folder: Path) -> None:
    """Follow every path, and do every command that the demo prints."""
    printed = text.splitlines()
    paths = [line.partition(": ")[2] for line in printed if line.startswith(("Trial:", "Results:"))]
    assert len(paths) == 6
    assert [path for path in paths if not (folder / path).is_dir()] == []
    commands = [shlex.split(line) for line in printed[printed.index("Try next:") + 1 :]]
    assert len(commands) == 3
    for command in commands:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=folder, env=environment()
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_steps_were_judged_while_the_training_ran(tmp_path: Path) -> None:
    scenario = Scenario("slow", "rests after each step", ("--steps=30", "--pace=0.05"), {})
    with pytest.MonkeyPatch.context() as patch:
        seen: list[int] = []

        class Counting(demo.LiveObserver):
            def progress(self, judged: int, known: int) -> None:
                super().progress(judged, known)
                seen.append(self.live)

        patch.setattr(demo, "LiveObserver", Counting)
        evaluated = demo._evaluate_live(scenario, tmp_path)
    assert evaluated.result.trial.steps == 31
    assert seen[0] == 1
    assert seen[-1] <= 31


def test_what_is_waited_for_is_handed_on(tmp_path: Path) -> None:
    said: list[object] = []

    class Shown(LogObserver):
        def waiting(self, *what: object) -> None:
            said.append(what)

    with demo._training(QUICK, tmp_path / "t") as training:
        demo.LiveObserver(training, Shown()).waiting("step 3", 10.0)
    assert said == [("step 3", 10.0)]


def test_ctrl_c_ends_the_demo_and_its_training(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "demo", "--output", "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
        start_new_session=True,
    )
    begun = tmp_path / "out" / "results" / "healthy" / "results.json"  # handlers are installed
    watcher = TrialWatcher([begun.parent])
    while not begun.exists() and process.poll() is None:
        watcher.wait(0.05)
    watcher.close()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr == "Stopped by signal SIGINT.\n"
    assert "healthy" in stdout
    trial = b"out/trials/healthy"
    assert [one for one in _command_lines() if trial in one and str(tmp_path).encode() in one] == []


def _command_lines() -> list[bytes]:
    """Return the command lines of all processes, each with its working folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append(
                (folder / "cmdline").read_bytes() + os.fsencode((folder / "cwd").readlink())
            )
        except OSError:
            continue
    return found


def test_ctrl_c_outside_an_evaluation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> EvaluationOutcome:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "_evaluate_live", interrupted)
    assert demo.run_demo(tmp_path) == 130
    assert capsys.readouterr().err == "Stopped by signal SIGINT.\n"


def test_an_evaluation_that_stops_ends_the_demo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stopping(Runner):
        def __init__(self, config: EvaluationConfig, **options: Any) -> None:
            super().__init__(config, **options)
            self.stops.reason = lambda **_: StopReason("Enough.", 124)  # type: ignore[method-assign] # stands in for a time limit

    monkeypatch.setattr("rule_runner.engine.evaluate.Runner", Stopping)
    monkeypatch.setattr(demo, "SCENARIOS", (QUICK,))
    assert demo.run_demo(tmp_path) == 124
    assert capsys.readouterr() == ("1/1 quick: one small layer.\n", "Enough.\n")


def test_a_verdict_that_is_not_the_expected_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = Scenario("wrong", "one small layer", QUICK.arguments, {"AllZero": "IssuesFound"})
    monkeypatch.setattr(demo, "SCENARIOS", (wrong,))
    done = CliRunner().invoke(main, ["demo", "--output", str(tmp_path)])
    assert done.exit_code == 1
    assert "AllZero: NoIssuesFound\n" in done.stdout
    assert done.stderr == (
        "Error: Verdict of AllZero on 'wrong' is NoIssuesFound instead of IssuesFound. "
        "The installation may be damaged: try rule-runner doctor.\n"
    )


@pytest.mark.parametrize(
    ("program", "how"),
    [
        pytest.param("import sys; sys.exit(3)", "exit code 3", id="fails"),
        pytest.param("import os; os.kill(os.getpid(), 9)", "signal 9", id="killed"),
    ],
)
def test_a_training_that_dies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, how: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{program}"\n')
    python.chmod(0o755)
    monkeypatch.setattr(demo, "SCENARIOS", (QUICK,))
    monkeypatch.setattr(sys, "executable", str(python))
    done = CliRunner().invoke(main, ["demo", "--output", str(tmp_path)])
    assert done.exit_code == 1
    assert done.stderr == (
        f"Error: The training 'quick' of the demo ended with {how} before its last step. "
        f"See '{tmp_path}/trials/quick.log', and start the demo again.\n"
    )


def test_a_training_that_goes_on_when_all_is_judged_is_ended(tmp_path: Path) -> None:
    scenario = Scenario("long", "rests long after each step", ("--pace=1000",), {})
    with demo._training(scenario, tmp_path / "trial") as training:
        assert training.runs
    assert training.process.returncode == -signal.SIGKILL
    with pytest.raises(ClientError, match="'long' of the demo ended with signal 9 before its last"):
        training.check()


def test_a_folder_with_a_demo_in_it(tmp_path: Path) -> None:
    (tmp_path / "trials" / "healthy").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"healthy' exists already\. Choose another one: --out"):
        demo.run_demo(tmp_path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "file")])
    assert done.exit_code == 73
    assert done.stderr == f"Cannot write '{tmp_path}/file/trials/healthy': Not a directory.\n"


def test_output_goes_to_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SCENARIOS", (QUICK,))
    assert CliRunner().invoke(main, ["demo"]).exit_code == 0
    (folder,) = (tmp_path / "rule-output").glob("[!.]*")
    assert folder.name.startswith("demo-")
    assert sorted(one.name for one in folder.iterdir()) == [
        "report.html",
        "results",
        "trials",
    ]


def test_a_table_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SCENARIOS", (QUICK,))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert demo.run_demo(tmp_path) == 0
    assert "┏━" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("installed", "beside", "expected"),
    [
        pytest.param("/bin/rule-runner", True, "rule-runner", id="on-the-path"),
        pytest.param(None, True, "'my env/bin/rule-runner'", id="in-an-environment"),
        pytest.param(None, False, "'{root}/my env/bin/python' -m rule_runner", id="a-checkout"),
    ],
)
def test_hints_call_the_program_as_it_can_be_called(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    installed: str | None,
    beside: bool,
    expected: str,
) -> None:
    programs = tmp_path / "my env" / "bin"
    programs.mkdir(parents=True)
    if beside:
        (programs / "rule-runner").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setattr(shutil, "which", lambda _: installed)
    assert demo._hints(Path("a b"))[1] == (
        f"  {expected.format(root=tmp_path)} trial show 'a b/trials/healthy'"
    )


def test_the_program_beside_python_is_named_in_full_from_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "rule-runner").write_text("")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert demo._program() == str(tmp_path / "rule-runner")


def test_what_a_training_saves(tmp_path: Path, clock: Any) -> None:
    demo_training.main([str(tmp_path / "t"), "--hidden", "5", "--steps=21", "--pace=2"], clock)
    trial = create_trial(tmp_path / "t", clock=clock)
    assert trial.steps(ModeKeys.TRAIN) == list(range(21))
    assert trial.steps(ModeKeys.EVAL) == [0]
    assert trial.global_step(ModeKeys.EVAL, 0) == 20
    assert clock.sleeps[:21] == [2.0] * 21
    members = {name: trial.tensor_names(collection=name) for name in demo_training.COLLECTIONS}
    assert members == {
        "losses": ["loss"],
        "gradients": [
            *("gradient/dense_0/bias", "gradient/dense_0/weight"),
            *("gradient/dense_1/bias", "gradient/dense_1/weight"),
        ],
        "weights": ["weight/dense_0", "weight/dense_1"],
        "activations": ["activation/dense_0"],
        "metrics": ["accuracy"],
    }
    assert trial.tensor("weight/dense_0").steps() == [0, 10, 21]
    assert trial.tensor("activation/dense_0").value(3).shape == (64, 5)


def test_a_training_learns(tmp_path: Path, clock: Any) -> None:
    demo_training.main([str(tmp_path / "t"), "--hidden", "64", "--steps=200"], clock)
    trial = create_trial(tmp_path / "t", clock=clock)
    accuracies = trial.tensor("accuracy")
    steps = accuracies.steps()
    assert accuracies.value(steps[0])[0] < 0.6
    assert accuracies.value(steps[-1])[0] > 0.8


def test_a_growing_learning_rate(tmp_path: Path, clock: Any) -> None:
    arguments = ["--learning-rate=2", "--growth=0.5", "--steps=11", "--hidden", "3"]
    demo_training.main([str(tmp_path / "t"), *arguments], clock)
    trial = create_trial(tmp_path / "t", clock=clock)
    moved = sum(
        2 * 0.5**step * trial.tensor("gradient/dense_1/weight").value(step) for step in range(10)
    )
    weight = trial.tensor("weight/dense_1")
    np.testing.assert_allclose(weight.value(0) - moved, weight.value(10), rtol=0, atol=1e-5)


def double(network: Network) -> Network:
    """Return the network in double precision, for differences."""
    return Network(
        network.activation,
        [weight.astype(float) for weight in network.weights],  # type: ignore[misc] # on purpose
        [bias.astype(float) + 0.1 for bias in network.biases],  # type: ignore[misc] # on purpose
    )


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
def test_gradients_are_those_of_the_loss(activation: str) -> None:
    rng = np.random.default_rng(5)
    network = double(initialised([64, 7, 5, 10], activation, rng))
    images = draw(9, rng)

    def loss() -> float:
        return float(cross_entropy(network.forward(images.pixels)[1], images.digits)[0])

    outputs, logits = network.forward(images.pixels)
    _, error = cross_entropy(logits, images.digits)
    tiny = 1e-5
    layers = []
    for layer, weight, bias in network.backward(outputs, error):
        layers.append(layer)
        for array, gradient in ((network.weights[layer], weight), (network.biases[layer], bias)):
            place = np.unravel_index(int(np.argmax(np.abs(gradient))), gradient.shape)
            array[place] += tiny
            more = loss()
            array[place] -= 2 * tiny
            less = loss()
            array[place] += tiny
            assert gradient[place] == pytest.approx((more - less) / (2 * tiny), rel=1e-3)
    assert layers == [2, 1, 0]


def test_initial_weights_have_the_usual_deviation() -> None:
    rng = np.random.default_rng(1)
    relu = initialised([400, 300, 10], "relu", rng)
    sigmoid = initialised([400, 200, 10], "sigmoid", rng)
    assert float(relu.weights[0].std()) == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert float(sigmoid.weights[0].std()) == pytest.approx((2 / 600) ** 0.5, rel=0.02)
    assert [bias.any() for bias in relu.biases] == [False, False]


def test_cross_entropy_of_huge_logits_is_finite() -> None:
    logits = np.array([[1e4, 0, 0], [0, 0, 0]], np.float32)
    loss, error = cross_entropy(logits, np.array([0, 1]))
    assert float(loss) == pytest.approx(np.log(3) / 2)
    np.testing.assert_allclose(error, [[0, 0, 0], [1 / 6, -1 / 3, 1 / 6]], rtol=1e-6)


def test_digits_are_the_same_for_the_same_seed_and_normalised() -> None:
    one, two = (draw(50, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one.pixels, two.pixels)
    np.testing.assert_array_equal(one.digits, two.digits)
    assert one.pixels.shape == (50, 64)
    assert float(one.pixels.mean()) == pytest.approx(0, abs=1e-6)
    assert float(one.pixels.std()) == pytest.approx(1, rel=1e-5)


def test_a_glyph_looks_like_its_digit() -> None:
    rows = ["".join(" #"[int(pixel)] for pixel in row) for row in glyphs()[7]]
    assert rows == ["#####", "    #", "   # ", "  #  ", " #   ", " #   ", " #   "]
