"""Rules over views of their own, in this process or in one of their own."""

from pathlib import Path
from typing import Any, ClassVar

import evaluating
import numpy as np
import pytest
import rawtrial
from evaluating import rule_job

from rule_core.rules.actions.actions import DeferredActions
from rule_core.sources.options import SourceOptions
from rule_runner.config.defaults import Isolation, RuleMode
from rule_runner.config.model import RuleJobConfig
from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from rule_runner.engine.invoker_factory import _make, _WorkerRequest, make_fork_server, make_invoker
from rule_runner.errors import ParameterError, RuleFailedError
from rule_runner.loading.loader import load_builtin, load_from
from rule_runner.loading.parameters import bind
from rule_runner.loading.placeholder_rule import PlaceholderRule
from rule_runner.loading.trials import open_trial
from smdebug.rules import Rule
from smdebug.rules.action.action import StopTrainingAction
from smdebug.rules.extensions import Quantity


class Plain(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("loss").value(step)[0] < 0)


def test_each_rule_has_views_of_its_own(tmp_path: Path) -> None:
    class Takes(Plain):
        made: list["Takes"] = []

        def __init__(self, base_trial: Any, other_trials: Any = None) -> None:
            super().__init__(base_trial, other_trials=other_trials)
            self.made.append(self)

    trials = [open_trial(str(tmp_path)), open_trial(str(tmp_path / "other"))]
    config = rule_job(Takes)
    for _ in range(2):
        assert isinstance(
            make_invoker(config, bind(config.loaded, {}), trials, None), InProcessInvoker
        )
    first, second = Takes.made
    assert first.base_trial.index is second.base_trial.index is trials[0].index
    assert first.base_trial is not second.base_trial
    assert [one.path for one in first.other_trials] == [str(tmp_path / "other")]


def test_actions_that_are_no_json_are_one_sentence(tmp_path: Path) -> None:
    config = rule_job(Plain, actions="{stop")
    with pytest.raises(ParameterError, match=r"^Actions must be JSON: Expecting"):
        make_invoker(config, bind(config.loaded, {}), [open_trial(str(tmp_path))], None)


def test_actions_are_the_rules_whether_its_constructor_takes_them_or_not(tmp_path: Path) -> None:
    made: list[Rule] = []

    class Keeps(Plain):
        def __init__(self, base_trial: Any) -> None:
            super().__init__(base_trial)
            made.append(self)

    config = rule_job(Keeps, actions='{"name": "stoptraining"}')
    make_invoker(config, bind(config.loaded, {}), [open_trial(str(tmp_path))], None)
    actions = made[0].actions
    assert actions.actions == [StopTrainingAction("Keeps")]
    actions.invoke("It is left to the runner.")
    assert isinstance(actions, DeferredActions)
    assert actions.messages == ["It is left to the runner."]


def test_a_rule_that_is_only_observed_gets_no_actions(tmp_path: Path) -> None:
    made: list[Rule] = []

    class Takes(Plain):
        def __init__(self, base_trial: Any, action_str: str) -> None:
            super().__init__(base_trial, action_str=action_str)
            self.given = action_str
            made.append(self)

    trials = [open_trial(str(tmp_path))]
    config = rule_job(Takes, actions='{"name": "stoptraining"}', mode=RuleMode.OBSERVE)
    make_invoker(config, bind(config.loaded, {}), trials, None)
    assert (made[0].actions.actions, made[0].__dict__["given"]) == ([], "")
    wrong = rule_job(Takes, actions="{stop", mode=RuleMode.OBSERVE)
    with pytest.raises(ParameterError, match=r"^Actions must be JSON: Expecting"):
        make_invoker(wrong, bind(wrong.loaded, {}), trials, None)


def test_rule_that_cannot_be_constructed(tmp_path: Path) -> None:
    class Refuses(Plain):
        def __init__(self, base_trial: Any) -> None:
            super().__init__(base_trial)
            raise SystemExit(3)

    config = rule_job(Refuses)
    with pytest.raises(RuleFailedError, match=r"^Rule 'Refuses' raised SystemExit while it was"):
        make_invoker(config, bind(config.loaded, {}), [open_trial(str(tmp_path))], None)


SOURCE = """
from smdebug.rules import Rule

class Low(Rule):
    def __init__(self, base_trial, limit="0"):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        return bool(self.base_trial.tensor("loss").value(step)[0] < self.limit)
"""


def quantities(*, builtin: bool) -> tuple[Quantity, ...]:
    return load_builtin("ExplodingTensor").rule_class.QUANTITIES if builtin else ()


@pytest.mark.parametrize("builtin", [True, False])
def test_rule_of_another_process_looks_for_files_itself(tmp_path: Path, builtin: bool) -> None:
    steps = {step: {"loss": np.float32([step])} for step in range(3)}
    files = evaluating.trial(steps, {"losses": ["loss"]}, ended=False)
    root = rawtrial.write(tmp_path / "trial", files)
    (tmp_path / "low.py").write_text(SOURCE)
    request = _WorkerRequest(
        "ExplodingTensor" if builtin else "Low",
        None if builtin else tmp_path / "low.py",
        {} if builtin else {"limit": "2"},
        ((str(root), "trial", 1000),),
        "",
    )
    made = _make(request)
    assert (made.begin().notes, made.begin().quantities) == ((), quantities(builtin=builtin))
    assert [made.judge(step).did for step in range(3)] == (
        [InvocationOutcome.CLEAR] * 3
        if builtin
        else [InvocationOutcome.MET, InvocationOutcome.MET, InvocationOutcome.CLEAR]
    )
    rawtrial.write(root, rawtrial.step_files(7, {"loss": np.float32([1])}))
    assert made.judge(7).did is (InvocationOutcome.CLEAR if builtin else InvocationOutcome.MET)
    made.close()


def test_source_goes_to_the_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(
        "rule_runner.engine.isolation.worker.ProcessInvoker", lambda *args: made.append(args)
    )
    (tmp_path / "low.py").write_text(SOURCE)
    loaded = load_from(str(tmp_path / "low.py"), run=False)
    config = RuleJobConfig("id", loaded, {"limit": "1"}, '{"name": "sms"}')
    fork_server: Any = object()
    make_invoker(config, bind(loaded, {}), [open_trial(str(tmp_path), "t", 7)], fork_server)
    request = _WorkerRequest(
        "Low",
        tmp_path / "low.py",
        {"limit": "1"},
        ((str(tmp_path), "t", 7, SourceOptions()),),
        '{"name": "sms"}',
        are_whole=(False,),
    )
    assert made == [("Low", _make, request, fork_server)]


class FakeForkServer:
    """What is asked of nurseries."""

    made: ClassVar[list[tuple[float | None, Any]]] = []

    def __init__(self, limit: float | None = None, environment: Any = None) -> None:
        self.made.append((limit, environment))


def test_environment_is_reduced_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_runner.engine.isolation.fork_server.ForkServer", FakeForkServer)
    monkeypatch.setattr("os.environ", {"PATH": "/bin", "AWS_PROFILE": "me", "TOKEN": "x"})
    monkeypatch.setattr(FakeForkServer, "made", [])
    config = evaluating.configured(Path("out"), [Plain], "/trial")
    assert make_fork_server(config) is None
    options: list[dict[str, Any]] = [
        {"rule_timeout": 2.5},
        {"isolate": Isolation.PROCESS},
        {"isolate": Isolation.PROCESS, "other_trials": ("s3://b/t",), "rule_timeout": 1.0},
    ]
    for more in options:
        make_fork_server(evaluating.configured(Path("out"), [Plain], "/trial", **more))
    assert FakeForkServer.made == [
        (2.5, None),
        (None, {"PATH": "/bin"}),
        (1.0, {"PATH": "/bin", "AWS_PROFILE": "me"}),
    ]


WRITER = """
from smdebug.rules import Rule

class Writes(Rule):
    def invoke_at_step(self, step):
        (self.output_dir / "seen").write_text(str(step))
        return False
"""


def test_a_rule_knows_the_folder_for_its_files(tmp_path: Path) -> None:
    made: list[Rule] = []

    class Keeps(Plain):
        def __init__(self, base_trial: Any, output_dir: Any = None) -> None:
            super().__init__(base_trial)
            self.output_dir = output_dir
            made.append(self)

    config = rule_job(Keeps)
    for raw in ({}, {"output_dir": "own"}):
        bound = bind(config.loaded, raw)
        make_invoker(config, bound, [open_trial(str(tmp_path))], None, tmp_path / "out")
    assert [one.output_dir for one in made] == [tmp_path / "out", "own"]


def test_a_rule_of_another_process_knows_the_folder_too(tmp_path: Path) -> None:
    files = evaluating.trial({3: {"loss": np.float32([1])}}, {"losses": ["loss"]}, ended=False)
    root = rawtrial.write(tmp_path / "trial", files)
    (tmp_path / "writes.py").write_text(WRITER)
    request = _WorkerRequest(
        "Writes", tmp_path / "writes.py", {}, ((str(root), "trial", 9),), "", tmp_path
    )
    assert _make(request).judge(3).did is InvocationOutcome.SKIPPED
    assert (tmp_path / "seen").read_text() == "3"


def test_a_rule_of_another_process_sees_all_of_a_finished_trial(tmp_path: Path) -> None:
    source = """
from smdebug.rules import Rule

class Compares(Rule):
    def invoke_at_step(self, step):
        shown = [len(trial.steps()) for trial in self.trials]
        return self.base_trial.tensor("loss").value(step)[0] >= 0 and shown == [1, 3]
"""
    (tmp_path / "compares.py").write_text(source)
    steps = {step: {"loss": np.float32([step])} for step in range(3)}
    files = evaluating.trial(steps, {"losses": ["loss"]})
    roots = [rawtrial.write(tmp_path / name, files) for name in ("base", "other")]
    request = _WorkerRequest(
        "Compares",
        tmp_path / "compares.py",
        {},
        tuple((str(root), root.name, 1000) for root in roots),
        "",
        are_whole=(False, True),
    )
    assert _make(request).judge(0).did is InvocationOutcome.MET


def test_rule_that_is_made_elsewhere_judges_nothing_here() -> None:
    rule = PlaceholderRule(None, threshold="1")
    assert rule.parameters == {"threshold": "1"}
    with pytest.raises(
        NotImplementedError, match=r"^Step 3 is judged by the rule's own process\.$"
    ):
        rule.invoke_at_step(3)
