"""docker run: runs an evaluation in one container, or in a container for each rule."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Final, TextIO

from msgspec.structs import replace

from rule_core.storage.uri import is_s3
from rule_runner.commands.evaluate import try_report
from rule_runner.config.defaults import EVERY_RULE, FITTING_RULES
from rule_runner.config.model import default_output
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.containers import plan, results
from rule_runner.containers.docker_engine import Engine
from rule_runner.containers.errors import HOST, EngineError
from rule_runner.containers.mounts import aws_folder, make_writable, present
from rule_runner.containers.options import ContainerRequest, located, split, translate
from rule_runner.containers.supervisor import ContainerExit, ContainerSupervisor, failure
from rule_runner.errors import EXIT_SIGNAL, UsageError
from rule_runner.notify.sinks.spec import writes_to_stdout
from rule_runner.results.file_names import safe_name
from rule_runner.results.schema import RuleResult

NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of ``docker run`` for containers.

    Attributes
    ----------
    network
        Name of a network; None selects the engine's default if the evaluation needs a network,
        and ``none`` otherwise.
    aws_config
        Whether containers that use AWS get the folder ``~/.aws``.
    """

    image: str
    pull: bool = False
    isolate: bool = False
    parallel: int = 2
    memory: str = "4g"
    cpus: float | None = None
    pids_limit: int = 256
    network: str | None = None
    aws_config: bool = False


def docker_run(request: EvaluationRequest, settings: Settings) -> int:
    """Evaluate in containers, and return the exit code.

    Raises
    ------
    EngineError
        If there is no engine, or it fails.
    UsageError
        If a container cannot run the evaluation.
    """
    output = located(request.output or str(default_output(request.any_trial)))
    try:
        return _prepared(replace(request, output=output), output, settings).run()
    except KeyboardInterrupt:  # before any container was created
        return EXIT_SIGNAL + signal.SIGINT


def _prepared(request: EvaluationRequest, output: str, settings: Settings) -> "_Evaluation":
    """Return the evaluation; its output folders exist."""
    request.check_rules()
    parts = _isolated(request, output) if settings.isolate else {"": request}
    memory = plan.parse_size(settings.memory)
    translated = {name: translate(part, Path.home()) for name, part in parts.items()}
    engine = Engine()
    engine.find_image(settings.image, pull=settings.pull)
    plans = {name: _plan(engine, settings, memory, part) for name, part in translated.items()}
    return _Evaluation(engine, settings, request, plans)


def _isolated(request: EvaluationRequest, output: str) -> dict[str, EvaluationRequest]:
    """Return the request of each rule's container; each prints its results as JSON."""
    kind = writes_to_stdout(request.sinks)
    if request.format == "sarif" or kind:
        what = "--format sarif" if request.format == "sarif" else f"--sink {kind}"
        raise UsageError(f"{what} cannot be combined with --isolate. Leave one of them out.")
    builtin = {rule.name for rule in request.rules if rule.source is None}
    for group in builtin & {EVERY_RULE, FITTING_RULES}:
        raise UsageError(
            f"--rule {group} cannot be combined with --isolate. Name the rules, or leave one out."
        )
    names = [safe_name(_name(rule)) for rule in request.rules]
    return split(replace(request, format="json"), names, output)


def _name(request: RuleRequest) -> str:
    """Return the name of a rule job, without running code of the user."""
    if request.id or (request.source and request.name):
        return request.id or request.name or ""
    if request.source is None:
        from rule_runner.loading.loader import load_named

        return load_named(request.name or "", run=False).name
    if is_s3(str(request.source)):
        raise UsageError(f"Give the rule of {str(request.source)!r} an ID: --source ID=s3://...")
    from rule_runner.loading.rule_file import read_rule_file

    return read_rule_file(Path(request.source)).choose(None)


def _plan(
    engine: Engine, settings: Settings, memory: int, translated: ContainerRequest
) -> plan.ContainerPlan:
    """Return the plan of one container, and create its output folder."""
    output = translated.request.output or ""
    if engine.remote and translated.mounts:
        raise EngineError(
            f"The engine of {HOST} is on another machine, which does not see folder "
            f"{str(translated.mounts[0].folder)!r}. Give s3:// paths, or use an engine here."
        )
    network = settings.network or (engine.network() if translated.network else NONE)
    variables = plan.environment(translated, os.environ, profile=settings.aws_config)
    plan.check_endpoints(
        (value for name, value in variables.items() if name.startswith(plan.ENDPOINT)), network
    )
    mounts = tuple(present(translated, output))
    owner = make_writable([mount.folder for mount in mounts if mount.writable], Path(output))
    return plan.ContainerPlan(
        image=settings.image,
        arguments=translated.arguments,
        mounts=mounts,
        environment=variables,
        network=network,
        memory=memory,
        cpus=settings.cpus or min(2, engine.processors),
        pids=settings.pids_limit,
        account=engine.account(*owner),
        output=output,
        aws_folder=aws_folder() if settings.aws_config and translated.cloud else None,
    )


def _limit(request: EvaluationRequest) -> float:
    """Return the time limit of an evaluation in seconds; infinite without a limit."""
    limit = inf if request.timeout is None else request.timeout
    limit += request.sink_deadline if request.sinks else 0
    return limit + (request.action_timeout if request.actions else 0)


def _pass_on(piece: bytes, stream: TextIO) -> None:
    """Write to a stream without buffering; a closed pipe does not stop the container."""
    with suppress(BrokenPipeError):
        stream.buffer.write(piece)
        stream.flush()


class _Evaluation:
    """One evaluation in containers: runs them, and prints their results."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        request: EvaluationRequest,
        plans: Mapping[str, plan.ContainerPlan],
    ) -> None:
        self._settings = settings
        self._request = request
        self._plans = plans
        self._printed: dict[str, bytes] = dict.fromkeys(plans, b"")
        self._heard = False
        self._fleet = ContainerSupervisor(
            engine, self._hear, abreast=settings.parallel, limit=_limit(request)
        )
        self._began = datetime.now(UTC)

    def _hear(self, name: str, out: bytes | None, err: bytes | None) -> None:
        """Pass on the output of a container; keep the results of several until all have ended."""
        if err:
            _pass_on(err, sys.stderr)
        if out and self._settings.isolate:
            self._printed[name] += out
        elif out:
            self._heard = True
            _pass_on(out, sys.stdout)

    def run(self) -> int:
        """Run the containers, print their results, and return the exit code."""
        endings = self._fleet.run(self._plans)
        lost = failure(endings)
        if lost is not None:
            raise lost
        rules = {name: self._rules(name, ending) for name, ending in endings.items()}
        codes = [
            results.exit_code(ending, has_results=bool(rules[name]))
            for name, ending in endings.items()
        ]
        if self._settings.isolate:
            self._show([rule for own in rules.values() for rule in own])
        elif endings[""].code == results.KILLED or not self._heard:
            self._show(rules[""])
        return results.combined(codes)

    def _rules(self, name: str, ending: ContainerExit) -> list[RuleResult]:
        """Return the results of a container; print why it ended if it did not end by itself."""
        why = results.trouble(ending, self._settings.memory)
        if why:
            print(f"{name}: {why}" if name else why, file=sys.stderr)
        output = self._plans[name].output
        printed = results.parsed({name: self._printed[name]})
        rules = [rule for part in printed.values() for rule in part.rules]
        if is_s3(output) or (rules and not why):  # possibly of an evaluation that ended before
            return rules
        return results.bring_to_an_end(Path(output), ending, why, self._began)

    def _show(self, rules: Sequence[RuleResult]) -> None:
        """Print results in the form of one evaluation."""
        if not rules or self._request.format == "sarif":  # it needs the classes of the rules
            return
        parts = [*results.parsed(self._printed).values()]
        result = results.compose(self._request.any_trial, parts, rules)
        outputs = [each.output for each in self._plans.values()]
        is_local = not any(map(is_s3, outputs))
        folder = Path(self._request.output or "") if is_local else None
        report = None
        if folder and self._request.report:
            report = try_report(folder, result.trial.name)
        results.show(result, self._request, folder, report)
