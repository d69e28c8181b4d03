"""JobDefinition: the rule configurations of a training job's request, right or with a reason."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from rule_core.rules.params import did_you_mean
from rule_runner.config.sagemaker_contract import RULE, parse_share
from rule_runner.errors import JobError, ParameterError, UsageError
from rule_runner.results.job_names import safe_name

# What the service takes; more is a warning, for nothing of it is needed here.
RULES: Final = 20
PARAMETERS: Final = 100
LENGTH: Final = 256  # characters of a parameter's name or value

_NAME: Final = "RuleConfigurationName"
_PARAMETERS: Final = "RuleParameters"
_MIN_COVERAGE: Final = "minCoverage"
_FIELDS: Final = (
    _NAME,
    _PARAMETERS,
    "RuleEvaluatorImage",
    "InstanceType",
    "VolumeSizeInGB",
    "LocalPath",
    "S3OutputPath",
)
# Which part of a request says where the job saves what, and in which folder.
_PLACES: Final = (("DebugHookConfig", "debug-output"), ("ProfilerConfig", "profiler-output"))
# How a value that is not given is written in YAML, where every scalar is its text.
_ABSENT: Final = (None, "", "~", "null", "Null", "NULL")


class Kind(enum.StrEnum):
    """The lists of rule configurations, as requests call them."""

    DEBUG = "DebugRuleConfigurations"
    PROFILER = "ProfilerRuleConfigurations"


class RuleConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule configuration.

    Attributes
    ----------
    name
        Its own, or where it stands if it has none.
    parameters
        Those that are texts.
    problem
        Why it cannot be used, in a sentence; "" if nothing is known against it.
    """

    name: str
    kind: Kind
    parameters: Mapping[str, str] = {}
    problem: str = ""

    @property
    def rule(self) -> str:
        """The rule's class name, or the configuration's if it names none."""
        return self.parameters.get(RULE) or self.name


class JobDefinition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a request says of the rules of a training job.

    Attributes
    ----------
    trial, profiler_trial
        Where the job saves its tensors and its profiler data, if that is said.
    min_coverage
        Minimum share of its steps that each rule must judge, or None; an extension of requests.
    place
        What it was read from, for messages: such as ``job file x.yaml``.
    """

    place: str
    configurations: tuple[RuleConfiguration, ...]
    training_job_name: str | None = None
    trial: str | None = None
    profiler_trial: str | None = None
    min_coverage: float | None = None

    def of(self, kind: Kind) -> list[RuleConfiguration]:
        """Return the configurations of one list."""
        return [one for one in self.configurations if one.kind is kind]


def begun(place: str) -> str:
    """Return what a definition was read from, as a sentence begins.

    >>> begun("job file x.yaml")
    'Job file x.yaml'
    """
    return place[:1].upper() + place[1:]


def definition_of(request: object, place: str) -> JobDefinition:
    """Return what a CreateTrainingJob request, or a DescribeTrainingJob answer, defines.

    Parameters
    ----------
    place
        Where it was read from, for messages.

    Raises
    ------
    JobError
        If it is no such object.
    """
    if not isinstance(request, Mapping):
        msg = f"{begun(place)} must hold an object with {Kind.DEBUG}, got {_kind_of(request)}."
        raise JobError(msg)
    found = [
        configuration_of(one, kind, f"{kind}[{number}]")
        for kind in Kind
        for number, one in enumerate(_listed(request, kind, place))
    ]
    if not found:
        words = [str(name) for name in request if name not in [*Kind]]
        hint = next(filter(None, (did_you_mean(word, [*map(str, Kind)]) for word in words)), "")
        msg = f"{begun(place)} holds no rules: neither {Kind.DEBUG} nor {Kind.PROFILER}.{hint}"
        raise JobError(msg)
    name = _text(request.get("TrainingJobName"))
    trial, profiler_trial = (_saved_to(request, name, *one) for one in _PLACES)
    min_coverage = _min_coverage(request, place)
    return JobDefinition(place, tuple(found), name, trial, profiler_trial, min_coverage)


def _min_coverage(request: Mapping[str, Any], place: str) -> float | None:
    share = request.get(_MIN_COVERAGE)
    if share in _ABSENT:
        return None
    try:
        return parse_share(share, f"{_MIN_COVERAGE} of {place}")
    except ParameterError as err:
        raise JobError(str(err)) from err


def configuration_of(raw: object, kind: Kind, where: str) -> RuleConfiguration:
    """Return a rule configuration; `where` it stands is its name if it has none."""
    if not isinstance(raw, Mapping):
        problem = f"A rule configuration must be an object, got {_kind_of(raw)}."
        return RuleConfiguration(where, kind, problem=problem)
    given = {} if raw.get(_PARAMETERS) in _ABSENT else raw[_PARAMETERS]
    texts, wrong = _parameters(given)
    name = raw.get(_NAME)
    problems = (_field_problem(raw), _name_problem(name), wrong)
    named = name if isinstance(name, str) and name not in _ABSENT else where
    return RuleConfiguration(named, kind, texts, next(filter(None, problems), ""))


def check_names(configurations: Iterable[RuleConfiguration], place: str) -> None:
    """Check that each configuration can be told from the others.

    Raises
    ------
    JobError
        If two have one name.
    """
    seen: set[str] = set()
    for one in configurations:
        if one.name in seen:
            msg = f"Two rule configurations of {place} are called {one.name!r}. Names must differ."
            raise JobError(msg)
        seen.add(one.name)


def choose(definition: JobDefinition, only: Sequence[str], exclude: Sequence[str]) -> JobDefinition:
    """Return the definition with the configurations of these names only, and without those.

    Raises
    ------
    UsageError
        If a name is none of the definition, or nothing is left.
    """
    names = [one.name for one in definition.configurations]
    for option, given in (("--only", only), ("--except", exclude)):
        for name in given:
            if name not in names:
                hint, known = did_you_mean(name, names), ", ".join(map(repr, names))
                msg = (
                    f"Option {option} names no rule configuration: {name!r}.{hint} Names: {known}."
                )
                raise UsageError(msg)
    kept = tuple(
        one
        for one in definition.configurations
        if (not only or one.name in only) and one.name not in exclude
    )
    if not kept:
        msg = "No rule configuration is left by --only and --except."
        raise UsageError(msg)
    return replace(definition, configurations=kept)


def limits_passed(definition: JobDefinition) -> list[str]:
    """Return a sentence for each limit of the service that does not hold here."""
    counts = {kind: len(definition.of(kind)) for kind in Kind}
    found = [
        f"SageMaker takes at most {RULES} {kind}, and {count} are given."
        for kind, count in counts.items()
        if count > RULES
    ]
    for one in definition.configurations:
        told = f"of rule configuration {one.name!r}"
        if (count := len(one.parameters)) > PARAMETERS:
            found.append(f"SageMaker takes at most {PARAMETERS} parameters, and {count} {told}.")
        found += [
            f"SageMaker takes at most {LENGTH} characters, not parameter {name[:LENGTH]!r} {told}."
            for name, text in one.parameters.items()
            if max(len(name), len(text)) > LENGTH
        ]
    return found


def _listed(request: Mapping[str, Any], kind: Kind, place: str) -> Sequence[object]:
    given = request.get(kind)
    if isinstance(given, (list, tuple)):
        return given
    if given in _ABSENT:
        return ()
    msg = f"{kind} of {place} must be a list, got {_kind_of(given)}."
    raise JobError(msg)


def _field_problem(raw: Mapping[str, object]) -> str:
    for name in raw:
        if name not in _FIELDS:
            hint = did_you_mean(str(name), _FIELDS)
            return (
                f"A rule configuration has no field {name!r}.{hint} Fields: {', '.join(_FIELDS)}."
            )
    return ""


def _name_problem(name: object) -> str:
    if name in _ABSENT:
        return f"The rule configuration has no {_NAME}."
    if not isinstance(name, str):
        return f'{_NAME} must be a string, got {name!r:.100}. Write "{name!s:.100}".'
    try:
        safe_name(name)
    except UsageError as err:
        return str(err)
    return ""


def _parameters(given: object) -> tuple[dict[str, str], str]:
    """Return the parameters that are texts, and what is wrong with the first other one."""
    if not isinstance(given, Mapping):
        return {}, f"{_PARAMETERS} must be an object, got {_kind_of(given)}."
    texts: dict[str, str] = {}
    wrong = ""
    for name, value in given.items():
        if isinstance(name, str) and isinstance(value, str):
            texts[name] = value
        elif not wrong:
            remedy = _remedy(value)
            wrong = f"Parameter {name!r:.100} must be a string, got {value!r:.100}. {remedy}"
    return texts, wrong


def _remedy(value: object) -> str:
    if value is None:
        return "Leave it out, or give it a value."
    if isinstance(value, (bool, int, float)):
        return f'Write "{value!s:.100}".'
    return "Write its items as one text."


def _saved_to(
    request: Mapping[str, Any], name: str | None, field_name: str, folder: str
) -> str | None:
    """Return where the job saves its tensors or profiler data; None if that is not said."""
    config = request.get(field_name)
    root = _text(config.get("S3OutputPath")) if isinstance(config, Mapping) else None
    return None if root is None or name is None else f"{root.rstrip('/')}/{name}/{folder}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value not in _ABSENT else None


def _kind_of(value: object) -> str:
    """Return what a value is, in a word that JSON and YAML have."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "nothing" if value is None else names.get(type(value), "a number")
