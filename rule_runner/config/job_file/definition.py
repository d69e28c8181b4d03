"""JobDefinition: the rule configurations of a training job's request, and their problems."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from rule_core.rules.params import did_you_mean
from rule_core.sources.options import SourceOptions
from rule_runner.config.defaults import Issue
from rule_runner.config.job_file.ignore import SECTION as IGNORE
from rule_runner.config.job_file.ignore import Mute, mutes
from rule_runner.config.job_file.sections import ABSENT, kind_of, listed
from rule_runner.config.job_file.sources import SECTION as SOURCES
from rule_runner.config.job_file.sources import source_options
from rule_runner.config.sagemaker_contract import RULE, parse_share
from rule_runner.errors import JobError, ParameterError, UsageError, translated
from rule_runner.results.file_names import safe_name

# Limits of the service. More is a warning only: nothing here depends on them.
RULES: Final = 20
PARAMETERS: Final = 100
LENGTH: Final = 256  # characters of a parameter's name or value

JOB_FILE_SCHEMA: Final = Path(__file__).with_name("job_file.schema.json")

_NAME: Final = "RuleConfigurationName"
_PARAMETERS: Final = "RuleParameters"
_MIN_COVERAGE: Final = "minCoverage"
_STOP_ON: Final = "stopOn"
_EXTENSIONS: Final = (_MIN_COVERAGE, _STOP_ON, IGNORE, SOURCES)
_ISSUES: Final[tuple[Issue, ...]] = ("error", "warning")
RULE_FIELDS: Final = (
    _NAME,
    _PARAMETERS,
    "RuleEvaluatorImage",
    "InstanceType",
    "VolumeSizeInGB",
    "LocalPath",
    "S3OutputPath",
)
# The parts of a request that say where the job saves, and the names of the folders.
_PLACES: Final = (("DebugHookConfig", "debug-output"), ("ProfilerConfig", "profiler-output"))


class Kind(enum.StrEnum):
    """The lists of rule configurations, as requests call them."""

    DEBUG = "DebugRuleConfigurations"
    PROFILER = "ProfilerRuleConfigurations"


class RuleConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule configuration.

    Attributes
    ----------
    name
        Its position if it has no name.
    parameters
        Those that are texts.
    problem
        A sentence on why it cannot be used; "" if it can.
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
    """The rules of a training job, as its request defines them.

    Attributes
    ----------
    trial, profiler_trial
        Where the job saves its tensors and its profiler data; None if unknown.
    min_coverage
        Minimum share of its steps that each rule must judge, or None; an extension of requests.
    sources
        How to read outputs of other writers; an extension too.
    ignore
        Findings to mute; an extension too.
    stop_on
        The severity from which actions stop a training, or None; an extension too.
    place
        Its source, for messages: such as ``job file x.yaml``.
    """

    place: str
    configurations: tuple[RuleConfiguration, ...]
    training_job_name: str | None = None
    trial: str | None = None
    profiler_trial: str | None = None
    min_coverage: float | None = None
    sources: SourceOptions = SourceOptions()
    ignore: tuple[Mute, ...] = ()
    stop_on: Issue | None = None

    def of(self, kind: Kind) -> list[RuleConfiguration]:
        """Return the configurations of one list."""
        return [rule for rule in self.configurations if rule.kind is kind]


def capitalized(place: str) -> str:
    """Return the place of a definition as the beginning of a sentence.

    >>> capitalized("job file x.yaml")
    'Job file x.yaml'
    """
    return place[:1].upper() + place[1:]


def definition_of(request: object, place: str) -> JobDefinition:
    """Return what a CreateTrainingJob request, or a DescribeTrainingJob answer, defines.

    Parameters
    ----------
    place
        Its source, for messages.

    Raises
    ------
    JobError
        If it is not such an object.
    """
    if not isinstance(request, Mapping):
        raise JobError(
            f"{capitalized(place)} must hold an object with {Kind.DEBUG}, got {kind_of(request)}."
        )
    _check_extensions(request, place)
    configurations = tuple(
        configuration_of(raw, kind, f"{kind}[{number}]")
        for kind in Kind
        for number, raw in enumerate(listed(request.get(kind), f"{kind} of {place}"))
    )
    if not configurations:
        words = [str(name) for name in request if name not in [*Kind]]
        hint = next(filter(None, (did_you_mean(word, [*map(str, Kind)]) for word in words)), "")
        raise JobError(
            f"{capitalized(place)} holds no rules: neither {Kind.DEBUG} nor {Kind.PROFILER}.{hint}"
        )
    name = _text(request.get("TrainingJobName"))
    trial, profiler_trial = (_saved_to(request, name, *saved) for saved in _PLACES)
    return JobDefinition(
        place,
        configurations,
        name,
        trial,
        profiler_trial,
        _min_coverage(request, place),
        source_options(request.get(SOURCES), place),
        mutes(request.get(IGNORE), place),
        _stop_on(request, place),
    )


def _check_extensions(request: Mapping[str, Any], place: str) -> None:
    """Reject misspelt names of the fields that are ours; those of the platform are ignored."""
    for name in request:
        hint = did_you_mean(str(name).replace("_", ""), _EXTENSIONS, cutoff=0.8)
        if hint and name not in _EXTENSIONS:
            raise JobError(f"{capitalized(place)} has an unknown field {name!r:.100}.{hint}")


def _stop_on(request: Mapping[str, Any], place: str) -> Issue | None:
    severity = request.get(_STOP_ON)
    if severity in ABSENT:
        return None
    for issue in _ISSUES:
        if severity == issue:
            return issue
    raise JobError(f"{_STOP_ON} of {place} must be 'error' or 'warning', got {severity!r:.100}.")


def _min_coverage(request: Mapping[str, Any], place: str) -> float | None:
    share = request.get(_MIN_COVERAGE)
    if share in ABSENT:
        return None
    with translated(JobError, ParameterError):
        return parse_share(share, f"{_MIN_COVERAGE} of {place}")


def configuration_of(raw: object, kind: Kind, where: str) -> RuleConfiguration:
    """Return a rule configuration; `where` it stands is its name if it has none."""
    if not isinstance(raw, Mapping):
        problem = f"A rule configuration must be an object, got {kind_of(raw)}."
        return RuleConfiguration(where, kind, problem=problem)
    texts, wrong = _parameters({} if raw.get(_PARAMETERS) in ABSENT else raw[_PARAMETERS])
    name = raw.get(_NAME)
    problems = (_field_problem(raw), _name_problem(name), wrong)
    named = name if isinstance(name, str) and name not in ABSENT else where
    return RuleConfiguration(named, kind, texts, next(filter(None, problems), ""))


def check_names(configurations: Iterable[RuleConfiguration], place: str) -> None:
    """Check that the names of configurations differ.

    Raises
    ------
    JobError
        If two have one name.
    """
    names: set[str] = set()
    for rule in configurations:
        if rule.name in names:
            raise JobError(
                f"Two rule configurations of {place} are called {rule.name!r}. Names must differ."
            )
        names.add(rule.name)


def choose(definition: JobDefinition, only: Sequence[str], exclude: Sequence[str]) -> JobDefinition:
    """Return the definition with the configurations of these names only, and without those.

    Raises
    ------
    UsageError
        If the definition has no such name, or no configuration remains.
    """
    names = [rule.name for rule in definition.configurations]
    for option, options in (("--only", only), ("--except", exclude)):
        for name in options:
            if name not in names:
                hint, listing = did_you_mean(name, names), ", ".join(map(repr, names))
                raise UsageError(
                    f"Option {option} names no rule configuration: {name!r}.{hint} "
                    f"Names: {listing}."
                )
    kept = tuple(
        rule
        for rule in definition.configurations
        if (not only or rule.name in only) and rule.name not in exclude
    )
    if not kept:
        raise UsageError("No rule configuration is left after --only and --except.")
    return replace(definition, configurations=kept)


def limits_passed(definition: JobDefinition) -> list[str]:
    """Return a sentence for each limit of the service that the definition exceeds."""
    counts = {kind: len(definition.of(kind)) for kind in Kind}
    sentences = [
        f"SageMaker takes at most {RULES} {kind}, and {count} are given."
        for kind, count in counts.items()
        if count > RULES
    ]
    for rule in definition.configurations:
        whose = f"of rule configuration {rule.name!r}"
        if (count := len(rule.parameters)) > PARAMETERS:
            sentences.append(
                f"SageMaker takes at most {PARAMETERS} parameters, and {count} {whose}."
            )
        sentences += [
            f"SageMaker takes at most {LENGTH} characters, not parameter {name[:LENGTH]!r} {whose}."
            for name, text in rule.parameters.items()
            if max(len(name), len(text)) > LENGTH
        ]
    return sentences


def _field_problem(raw: Mapping[str, object]) -> str:
    for name in raw:
        if name not in RULE_FIELDS:
            hint = did_you_mean(str(name), RULE_FIELDS)
            fields = ", ".join(RULE_FIELDS)
            return f"A rule configuration has no field {name!r}.{hint} Fields: {fields}."
    return ""


def _name_problem(name: object) -> str:
    if name in ABSENT:
        return f"The rule configuration has no {_NAME}."
    if not isinstance(name, str):
        return f'{_NAME} must be a string, got {name!r:.100}. Write "{name!s:.100}".'
    try:
        safe_name(name)
    except UsageError as err:
        return str(err)
    return ""


def _parameters(raw: object) -> tuple[dict[str, str], str]:
    """Return the parameters that are texts, and the problem of the first that is not."""
    if not isinstance(raw, Mapping):
        return {}, f"{_PARAMETERS} must be an object, got {kind_of(raw)}."
    texts: dict[str, str] = {}
    wrong = ""
    for name, value in raw.items():
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
    """Return where the job saves its tensors or profiler data; None if unknown."""
    config = request.get(field_name)
    root = _text(config.get("S3OutputPath")) if isinstance(config, Mapping) else None
    return None if root is None or name is None else f"{root.rstrip('/')}/{name}/{folder}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value not in ABSENT else None
