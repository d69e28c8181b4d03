"""docker run: an evaluation in a container of its own, or each of its rules in one."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from rule_runner.commands import try_report
from rule_runner.config import DEFAULT_ACTION_TIMEOUT_S, default_output
from rule_runner.containers.engine import Engine
from rule_runner.containers.errors import HOST, EngineError
from rule_runner.containers.fleet import Ending, Fleet, failure
from rule_runner.containers.mounts import aws_folder, make_writable, present
from rule_runner.containers.options import (
    OUTPUT,
    Option,
    Translated,
    kind_of,
    located,
    requests_of,
    split,
    translate,
    trial_of,
    values,
)
from rule_runner.containers.plan import (
    ENDPOINT,
    ContainerPlan,
    Limits,
    check_endpoints,
    environment,
    parse_size,
)
from rule_runner.containers.results import (
    KILLED,
    bring_to_an_end,
    combined,
    compose,
    exit_code,
    parsed,
    show,
    trouble,
)
from rule_runner.delivery import DEADLINE_S
from rule_runner.errors import EXIT_SIGNAL, UsageError
from rule_runner.options import EVERY_RULE
from rule_runner.outputs import safe_name
from rule_runner.results import RuleResult
from rule_runner.rule_requests import RuleRequest
from rule_runner.sinks.parsing import ON_STDOUT
from smdebug.storage.uri import is_s3

NONE: Final = "none"
# What takes its time after --timeout, and the time itself.
_DEFAULTS: Final = {
    "--timeout": float("inf"),
    "--sink-deadline": DEADLINE_S,
    "--action-timeout": DEFAULT_ACTION_TIMEOUT_S,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How containers run, as the command line says it.

    Attributes
    ----------
    network
        None: none if nothing is to be reached, else the engine's own.
    aws_config
        Whether ``~/.aws`` is mounted for what talks to AWS.
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


def docker_run(options: Sequence[Option], settings: Settings) -> int:
    """Evaluate in containers what the options of evaluate ask for, and return the exit code.

    Raises
    ------
    EngineError
        If there is no engine, or it does not do its part.
    UsageError
        If the options cannot be had in a container.
    """
    try:
        return _prepared(_with_output(options), settings).run()
    except KeyboardInterrupt:  # before any container was there
        return EXIT_SIGNAL + signal.SIGINT


def _prepared(options: Sequence[Option], settings: Settings) -> "_Evaluation":
    """Return the evaluation, with its engine, its plans and its output folders."""
    parts = _isolated(options) if settings.isolate else {"": list(options)}
    memory = parse_size(settings.memory)
    translated = {name: translate(part, Path.home()) for name, part in parts.items()}
    engine = Engine()
    engine.find_image(settings.image, pull=settings.pull)
    plans = {
        name: _plan(engine, settings, memory, one, values(parts[name], OUTPUT)[-1])
        for name, one in translated.items()
    }
    return _Evaluation(engine, settings, options, plans)


def _with_output(options: Sequence[Option]) -> list[Option]:
    """Return the options with an output folder, absolute if it is one of this machine."""
    given = values(options, OUTPUT)
    now = datetime.now().astimezone()
    output = given[-1] if given else str(default_output(trial_of(options), now))
    return [*(one for one in options if one[0] != OUTPUT), (OUTPUT, located(output)[0])]


def _isolated(options: Sequence[Option]) -> dict[str, list[Option]]:
    """Return the options of each rule's container; each prints its results as JSON."""
    (form,) = values(options, "--format")[-1:] or ["table"]
    kinds = {kind_of("--sink", one) for one in values(options, "--sink")} & ON_STDOUT
    if form == "sarif" or kinds:
        what = "--format sarif" if form == "sarif" else f"--sink {min(kinds)}"
        msg = f"{what} cannot be combined with --isolate. Leave one of them out."
        raise UsageError(msg)
    requests = requests_of(options)
    if any(request.name == EVERY_RULE and request.source is None for request in requests):
        msg = "--rule all cannot be combined with --isolate. Name the rules, or leave one out."
        raise UsageError(msg)
    names = [(request, safe_name(_name(request))) for request in requests]
    plain = [option for option in options if option[0] != "--format"]
    return {name: [*part, ("--format", "json")] for name, part in split(plain, names).items()}


def _name(request: RuleRequest) -> str:
    """Return what a rule job is called, without running anything of the user's."""
    if request.id or (request.source and request.name):
        return request.id or request.name or ""
    if request.source is None:
        from rule_runner.loader import load_builtin  # noqa: PLC0415 - reads the table of rules

        return load_builtin(request.name or "").name
    if is_s3(str(request.source)):
        msg = f"Give the rule of {str(request.source)!r} an ID: --source ID=s3://..."
        raise UsageError(msg)
    from rule_runner.rule_file import read_rule_file  # noqa: PLC0415 - only for files

    return read_rule_file(Path(request.source)).choose(None)


def _plan(
    engine: Engine, settings: Settings, memory: int, translated: Translated, output: str
) -> ContainerPlan:
    """Return one container as it is to be; its output folder is there then."""
    if engine.remote and translated.mounts:
        msg = (
            f"The engine of {HOST} is on another machine, which does not see folder "
            f"{str(translated.mounts[0].folder)!r}. Give s3:// paths, or use an engine here."
        )
        raise EngineError(msg)
    network = settings.network or (engine.network() if translated.network else NONE)
    variables = environment(translated, os.environ, profile=settings.aws_config)
    check_endpoints(
        (value for name, value in variables.items() if name.startswith(ENDPOINT)), network
    )
    mounts = tuple(present(translated, output))
    owner = make_writable([one.folder for one in mounts if one.writable], Path(output))
    return ContainerPlan(
        image=settings.image,
        arguments=translated.arguments,
        mounts=mounts,
        environment=variables,
        network=network,
        limits=Limits(memory, settings.cpus or min(2, engine.processors), settings.pids_limit),
        account=engine.account(*owner),
        output=output,
        aws_folder=aws_folder() if settings.aws_config and translated.cloud else None,
    )


def _limit(options: Sequence[Option]) -> float:
    """Return after how many seconds an evaluation should have ended; infinite without a limit."""
    names = ["--timeout"]
    names += ["--sink-deadline"] if values(options, "--sink") else []
    names += ["--action-timeout"] if values(options, "--action") else []
    return sum(
        float(given[-1]) if (given := values(options, name)) else _DEFAULTS[name] for name in names
    )


def _pass_on(piece: bytes, stream: TextIO) -> None:
    """Write to a stream at once; that nobody reads it any more stops no container."""
    with suppress(BrokenPipeError):
        stream.buffer.write(piece)
        stream.flush()


class _Evaluation:
    """One evaluation in containers, from their start to what is printed of them."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        options: Sequence[Option],
        plans: Mapping[str, ContainerPlan],
    ) -> None:
        self._settings = settings
        self._options = options
        self._plans = plans
        self._printed: dict[str, bytes] = dict.fromkeys(plans, b"")
        self._heard = False
        self._fleet = Fleet(engine, self._hear, abreast=settings.parallel, limit=_limit(options))
        self._began = datetime.now(UTC)

    def _hear(self, name: str, out: bytes | None, err: bytes | None) -> None:
        """Pass on what a container prints; results of several are kept until all are there."""
        if err:
            _pass_on(err, sys.stderr)
        if out and self._settings.isolate:
            self._printed[name] += out
        elif out:
            self._heard = True
            _pass_on(out, sys.stdout)

    def run(self) -> int:
        """Run the containers, print what they came to, and return the exit code."""
        endings = self._fleet.run(self._plans)
        lost = failure(endings)
        if lost is not None:
            raise lost
        found = {name: self._results(name, ending) for name, ending in endings.items()}
        codes = [exit_code(one, begun=bool(found[name])) for name, one in endings.items()]
        if self._settings.isolate:
            self._show([rule for rules in found.values() for rule in rules])
        elif endings[""].code == KILLED or not self._heard:
            self._show(found[""])
        return combined(codes)

    def _results(self, name: str, ending: Ending) -> list[RuleResult]:
        """Return the results of a container, and say what ended it if it did not end by itself."""
        why = trouble(ending, self._settings.memory)
        if why:
            print(f"{name}: {why}" if name else why, file=sys.stderr)  # noqa: T201 - one sentence
        output = self._plans[name].output
        if is_s3(output):
            printed = parsed({name: self._printed[name]})
            return [rule for part in printed.values() for rule in part.rules]
        return bring_to_an_end(Path(output), ending, why, self._began)

    def _show(self, rules: Sequence[RuleResult]) -> None:
        """Print results as one evaluation's."""
        (form,) = values(self._options, "--format")[-1:] or ["table"]
        if not rules or form == "sarif":  # it tells of the rules' classes, which are not here
            return
        parts = [*parsed(self._printed).values()]
        result = compose(trial_of(self._options), parts, rules)
        outputs = [plan.output for plan in self._plans.values()]
        folders = [Path(one) for one in outputs if not is_s3(one)]
        (top,) = values(self._options, OUTPUT)
        report = try_report(folders, Path(top), result.trial.name) if folders else None
        show(result, form, folders, report)
