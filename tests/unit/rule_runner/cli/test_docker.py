"""docker run on the command line: what is passed on, what is refused, and what comes of endings."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import reports
from click.testing import CliRunner, Result

from rule_runner.cli import main
from rule_runner.config.defaults import RuleMode
from rule_runner.config.request import EvaluationRequest, RuleRequest, read_request
from rule_runner.containers import build as container_build
from rule_runner.containers import run as container_run
from rule_runner.containers.errors import EngineError
from rule_runner.containers.plan import Account, ContainerPlan
from rule_runner.containers.results import compose
from rule_runner.containers.supervisor import ContainerExit
from rule_runner.results.json_text import dump_json
from rule_runner.results.schema import RuleJobFacts, rule_result
from rule_runner.results.state import RuleJobState


class FakeEngine:
    """Stands for an engine of this machine that has every image and no network."""

    remote = False
    processors = 4

    def find_image(self, name: str, *, pull: bool) -> None:
        del pull
        if name == "gone":
            msg = "The engine has no image 'gone'."
            raise EngineError(msg)

    def network(self) -> str:
        return "bridge"

    def account(self, uid: int, gid: int) -> Account:
        del uid, gid
        return Account("7:8")


class FakeFleet:
    """Stands in for containers with scripted output and exit."""

    plans: Mapping[str, ContainerPlan]
    limit: float
    ending = ContainerExit(0)
    printed: Mapping[str, bytes] = {}

    def __init__(self, engine: object, hear: Callable[..., None], **options: Any) -> None:
        del engine
        self._hear = hear
        FakeFleet.limit = options["limit"]

    def run(self, plans: Mapping[str, ContainerPlan]) -> dict[str, ContainerExit]:
        FakeFleet.plans = plans
        for name in plans:
            self._hear(name, self.printed.get(name), b"said\n")
        return dict.fromkeys(plans, self.ending)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "trial").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(container_run, "Engine", FakeEngine)
    monkeypatch.setattr(container_run, "ContainerSupervisor", FakeFleet)
    monkeypatch.setattr(FakeFleet, "ending", ContainerExit(0))
    monkeypatch.setattr(FakeFleet, "printed", {})
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["docker", "run", "--trial=trial", *arguments])


def requested(plan: ContainerPlan) -> EvaluationRequest:
    option, text = plan.arguments
    assert option == "--request"
    return read_request(text)


def test_options_are_passed_on_as_a_request(place: Path) -> None:
    given = ("--rule=AllZero", "-p", "a=1", "-p", "b=2", "-vv", "--no-wait", "--timeout=3")
    done = run(*given, "--output=out", "--image=mine:1")
    assert done.exit_code == 0, done.output
    (plan,) = FakeFleet.plans.values()
    assert plan.image == "mine:1"
    assert requested(plan) == EvaluationRequest(
        trial=f"{place}/trial",
        rules=(RuleRequest(name="AllZero"),),
        parameters=("a=1", "b=2"),
        wait=False,
        timeout=3.0,
        output=f"{place}/out",
        verbose=2,
    )
    assert FakeFleet.limit == 3.0


def test_defaults_are_the_hardened_ones(place: Path) -> None:
    run("--rule=AllZero")
    (plan,) = FakeFleet.plans.values()
    assert (plan.network, plan.memory, plan.cpus) == ("none", 4 * 2**30, 2)
    assert (plan.pids, plan.account, plan.environment) == (256, Account("7:8"), {})
    assert re.fullmatch(rf"{place}/rule-output/trial-\d{{8}}-\d{{6}}", plan.output)
    assert Path(plan.output).is_dir()


def test_nothing_but_what_is_written_is_made_writable(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def make(written: list[Path], output: Path) -> tuple[int, int]:
        made.extend([*written, output])
        return 7, 8

    monkeypatch.setattr(container_run, "make_writable", make)
    run("--rule=AllZero", "--sink=file:events", "--output=out")
    assert sorted(made) == [place / "events", place / "out", place / "out"]


def test_time_for_sinks_and_actions_is_added_to_the_time_limit() -> None:
    run("--rule=AllZero", "--timeout=3", "--sink=file:x", "--sink-deadline=5")
    assert FakeFleet.limit == 8.0


def test_the_endpoint_goes_by_name_to_what_talks_to_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "")
    run("--rule=AllZero", "--endpoint-url=http://store:9000", "--other-trial=s3://bucket/run")
    (plan,) = FakeFleet.plans.values()
    assert plan.environment["AWS_ENDPOINT_URL_S3"] == "http://store:9000"
    assert "store" not in " ".join(plan.arguments)
    assert plan.network == "bridge"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--rule=AllZero", "--image=gone"], 1, "Error: The engine has no image 'gone'."),
        (["--rule=AllZero", "--memory=1"], 2, "Error: Memory must be a size of at least 64m"),
        (["--rule=AllZero", "--action=command:ls"], 2, "would run inside the container"),
        (["--rule=all", "--isolate"], 2, "--rule all cannot be combined with --isolate."),
        (["--rule=AllZero", "--isolate", "--sink=emf"], 2, "--sink emf cannot be combined with"),
        (["--rule=AllZero", "--isolate", "--format=sarif"], 2, "--format sarif cannot be"),
        (["--source=s3://b/r.py", "--isolate"], 2, "Give the rule of 's3://b/r.py' an ID"),
        (["--source=nowhere/rule.py"], 1, "nowhere' does not exist. Check the path"),
        (["--other-trial=nowhere", "--rule=AllZero"], 1, "nowhere' does not exist. Check the path"),
        (["--rule=AllZero", "--aws-config"], 1, "--aws-config needs the folder"),
    ],
)
def test_what_is_refused(
    arguments: list[str], code: int, said: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place / "home"))
    if "--aws-config" in arguments:
        arguments = [*arguments, "--other-trial=s3://bucket/run"]
    done = run(*arguments)
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


def test_a_remote_engine_sees_no_folder_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeEngine, "remote", True)
    done = run("--rule=AllZero")
    assert done.exit_code == 1
    assert "is on another machine, which does not see folder" in done.stderr


def test_a_trial_that_is_waited_for_may_be_missing(place: Path) -> None:
    done = run("--rule=AllZero", "--other-trial=later", "--wait-for-trial=9")
    assert done.exit_code == 0, done.output
    (plan,) = FakeFleet.plans.values()
    assert place in [mount.folder for mount in plan.mounts]


def test_what_a_container_prints_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeFleet, "printed", {"": b"results\n"})
    monkeypatch.setattr(FakeFleet, "ending", ContainerExit(10))
    done = run("--rule=AllZero")
    assert (done.exit_code, done.stdout, done.stderr) == (10, "results\n", "said\n")


def test_a_lost_engine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeFleet, "ending", ContainerExit(lost="No such file."))
    done = run("--rule=AllZero")
    assert (done.exit_code, "connection to the engine was lost" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("given", "passed_on", "containers"),
    [
        (["--isolate"], "none", 1),
        (["--isolate=container"], "none", 1),
        (["--isolate", "process"], "process", 1),
        (["--isolate=none"], "none", 1),
        (["--isolate", "--rule=b=Overfit"], "none", 2),
        (["--isolate=process", "--rule=b=Overfit"], "process", 1),
    ],
)
def test_what_each_rule_has_of_its_own(given: list[str], passed_on: str, containers: int) -> None:
    run("--rule=AllZero", "--output=out", *given)
    plans = FakeFleet.plans.values()
    assert len(plans) == containers
    for plan in plans:
        assert requested(plan).isolate == passed_on


def test_results_of_isolated_rules_are_printed_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeFleet, "ending", ContainerExit(137, out_of_memory=True))
    part = dump_json(compose("/trial", [], [])).encode()
    monkeypatch.setattr(FakeFleet, "printed", {"AllZero": part, "b": part})
    done = run("--isolate", "--rule=AllZero", "--rule=b=Overfit", "--output=out", "--format=json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count("The container needed more memory than --memory 4g.") == 2
    assert sorted(FakeFleet.plans) == ["AllZero", "b"]
    assert [requested(plan).format for plan in FakeFleet.plans.values()] == ["json"] * 2


def test_a_rule_file_names_its_rule_without_being_run(place: Path) -> None:
    text = "from smdebug.rules import Rule\nclass Mine(Rule):\n    pass\nraise SystemExit(3)\n"
    (place / "rules").mkdir()
    (place / "rules" / "mine.py").write_text(text, encoding="utf-8")
    done = run("--isolate", "--source=a=rules/mine.py", "--source=rules/mine.py")
    assert done.exit_code == 0, done.output
    assert sorted(FakeFleet.plans) == ["Mine", "a"]


def leaves_unprinted(monkeypatch: pytest.MonkeyPatch, ending: ContainerExit) -> None:
    """Let containers leave results that have not ended, and print none."""
    evaluation = RuleJobState("AllZero", "AllZero", False, datetime.now(UTC))
    facts = RuleJobFacts({}, "/trial", RuleMode.ENFORCE, "print", {})
    begun = rule_result(evaluation, facts, trial_ended=False, duration_s=0.0, rule_time_s=0.0)

    def leave(self: FakeFleet, plans: Mapping[str, ContainerPlan]) -> dict[str, ContainerExit]:
        del self
        FakeFleet.plans = plans
        for plan in plans.values():
            (Path(plan.output) / ".sagemaker-ignore").mkdir()
            future = msgspec.structs.replace(begun, started_at="2999-01-01T00:00:00.000Z")
            reports.write(Path(plan.output), future)
        return dict.fromkeys(plans, ending)

    monkeypatch.setattr(FakeFleet, "run", leave)


def test_coverage_and_report_are_the_containers_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves_unprinted(monkeypatch, ContainerExit(143, timed_out=True))
    done = run("--rule=AllZero", "--output=out", "--no-report", "--min-coverage=0.9")
    (plan,) = FakeFleet.plans.values()
    assert (requested(plan).report, requested(plan).min_coverage) == (False, 0.9)
    assert (done.exit_code, "Report:" in done.stdout) == (124, False)
    assert not (place / "out/report.html").exists()


@pytest.mark.parametrize(
    ("ending", "code", "first"),
    [
        pytest.param(ContainerExit(137, out_of_memory=True), 1, "AllZero: Error", id="killed"),
        pytest.param(
            ContainerExit(143, timed_out=True), 124, "AllZero: InProgress", id="cut-short"
        ),
    ],
)
def test_results_that_a_container_did_not_print_are_read_back(
    ending: ContainerExit, code: int, first: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaves_unprinted(monkeypatch, ending)
    done = run("--rule=AllZero", "--output=out")
    assert (done.exit_code, done.stdout.split("\n")[0]) == (code, first)
    assert done.stdout.endswith(f"Results: {place}/out\nReport: {place}/out/report.html\n")


def test_an_interruption_before_any_container_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeEngine, "find_image", interrupted)
    assert run("--rule=AllZero").exit_code == 130


class Building:
    """Stands for an engine that builds."""

    told: list[dict[str, str]] = []
    asked: tuple[Any, ...] = ()

    def build(self, *what: Any) -> list[dict[str, str]]:
        Building.asked = what
        return self.told


@pytest.fixture
def building(monkeypatch: pytest.MonkeyPatch) -> type[Building]:
    monkeypatch.setattr(container_build, "Engine", Building)
    monkeypatch.setenv("PIP_INDEX_URL", "https://packages.example.org/simple")
    return Building


def build(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["docker", "build", *arguments])


def test_a_build_prints_the_name_of_the_image(
    building: type[Building], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "told", [{"stream": "Step\x1b[31m 1\n"}, {"aux": "x"}])
    done = build("--tag=t:1", "--base-image=b:2", "--network=host", "--build-arg=A=b=c")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "t:1\n", "Step\\x1b[31m 1\n")
    arguments = {
        "A": "b=c",
        "BASE_IMAGE": "b:2",
        "PIP_INDEX_URL": "https://packages.example.org/simple",
        "VARIANT": "slim",
    }
    assert building.asked == (container_build.ROOT, "t:1", arguments, "host")


def test_a_variant_is_built(building: type[Building]) -> None:
    assert build("--variant=full").exit_code == 0
    assert building.asked[2]["VARIANT"] == "full"
    done = build("--variant=fat")
    assert (done.exit_code, "'fat' is not one of 'slim', 'full'" in done.stderr) == (2, True)


def test_a_build_that_fails_is_an_error(
    building: type[Building], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "told", [{"error": "no such\nbase"}])
    done = build()
    assert (done.exit_code, done.stderr) == (
        1,
        "Error: The image could not be built: no such base\n",
    )


def test_a_build_argument_has_a_name_and_a_value(building: type[Building]) -> None:
    assert building
    done = build("--build-arg=A")
    assert (done.exit_code, "must be KEY=VALUE, got 'A'." in done.stderr) == (2, True)


def test_without_a_checkout_there_is_nothing_to_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_build, "ROOT", tmp_path)
    done = build()
    assert (done.exit_code, "built from a checkout of rule-runner" in done.stderr) == (2, True)
