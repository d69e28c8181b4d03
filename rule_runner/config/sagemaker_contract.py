"""Contract: what the platform provides to a rule container: environment and files."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from rule_runner.config.defaults import ACTIONS, STOP_FILE, RuleMode
from rule_runner.errors import ParameterError

ML: Final = PurePosixPath("/opt/ml")
ROOT: Final = "RULE_RUNNER_ROOT"
OVERWRITE: Final = "RULE_RUNNER_OVERWRITE"
IDLE_TIMEOUT: Final = "RULE_RUNNER_IDLE_TIMEOUT"
MODE: Final = "RULE_RUNNER_MODE"
MIN_COVERAGE: Final = "RULE_RUNNER_MIN_COVERAGE"

JOB: Final = ML / "config/processingjobconfig.json"
TENSORS: Final = ML / "processing/input/tensors"
PROFILER: Final = ML / "processing/input/profiler"
OUTPUT: Final = ML / "processing/output/rule"
MESSAGE: Final = ML / "output/message"
MOUNTS: Final = Path("/proc/self/mounts")

RULE: Final = "rule_to_invoke"
SOURCE: Final = "source_s3_uri"
OTHERS: Final = "other_trials"
OTHER: Final = re.compile(r"other_trial_(\d+)")
STEPS: Final = ("start_step", "end_step")
GRACE: Final = "rule_stop_grace_time_secs"
_RESERVED: Final = frozenset({RULE, SOURCE, ACTIONS, OTHERS, *STEPS, GRACE})
SUPPORTED: Final = frozenset({MODE, MIN_COVERAGE})  # platform parameters for the runner
# Names that the platform adds to the parameters of the rule.
_PLATFORM: Final = re.compile(
    r"TRAINING_JOB_ARN|TRAINING_IMAGE|(SAGEMAKER|SMDEBUG|AWS|PROCESSING_JOB|RULE_RUNNER)_.*"
)

# SageMaker's folders of a training job; their parent has the job's name.
_JOB_IN_URI: Final = re.compile(
    r"s3://[^/]+/(?:.+/)?([^/]+)/(?:debug-output|profiler-output|rule-output(?:/[^/]+)?)"
)


class _S3Data(msgspec.Struct, rename="pascal"):
    s3_uri: str = ""
    local_path: str = ""


class _Output(msgspec.Struct, rename="pascal"):
    s3_output: _S3Data = msgspec.field(default_factory=_S3Data, name="S3Output")


class _Outputs(msgspec.Struct, rename="pascal"):
    outputs: list[_Output] = []


class _Input(msgspec.Struct, rename="pascal"):
    input_name: str = ""
    s3_input: _S3Data = msgspec.field(default_factory=_S3Data, name="S3Input")


class _Job(msgspec.Struct, rename="pascal"):
    """The part of ``processingjobconfig.json`` that is used."""

    processing_job_arn: str = ""
    environment: dict[str, str] = {}
    processing_inputs: list[_Input] = []
    processing_output_config: _Outputs = msgspec.field(default_factory=_Outputs)


@dataclass(frozen=True, slots=True)
class Contract:
    """The input of a rule container: its environment, and that of the job if there is one.

    Attributes
    ----------
    root
        The folder that stands for ``/opt/ml``.
    environment
        The process's environment, overlaid with that of the job.
    declared
        The environment of the job's configuration file, or None without one.
    """

    root: Path
    environment: Mapping[str, str]
    declared: Mapping[str, str] | None
    job: _Job

    def place(self, path: str | PurePosixPath) -> Path:
        """Return where a path of the contract lies on this machine."""
        pure = PurePosixPath(path)
        return self.root / pure.relative_to(ML) if pure.is_relative_to(ML) else Path(pure)

    @property
    def tensors(self) -> Path:
        """The folder of the base trial."""
        return self._input(TENSORS)

    @property
    def profiler(self) -> Path:
        """The folder of the profiler data."""
        return self._input(PROFILER)

    @property
    def inputs(self) -> tuple[Path, ...]:
        """The folders that the platform fills."""
        paths = (source.s3_input.local_path for source in self.job.processing_inputs)
        return (self.place(TENSORS), self.place(PROFILER), *map(self.place, filter(None, paths)))

    @property
    def has_profiler_only(self) -> bool:
        """Whether the job's inputs are profiler data, and no tensors."""
        names = {source.input_name.lower() for source in self.job.processing_inputs}
        return PROFILER.name in names and TENSORS.name not in names

    def _input(self, usual: PurePosixPath) -> Path:
        """Return the folder of the input that is called like the last part of its usual path."""
        for source in self.job.processing_inputs:
            if source.input_name.lower() == usual.name and source.s3_input.local_path:
                return self.place(source.s3_input.local_path)
        return self.place(usual)

    @property
    def output(self) -> Path:
        """The output folder."""
        for target in self.job.processing_output_config.outputs:
            if target.s3_output.local_path:
                return self.place(target.s3_output.local_path)
        return self.place(OUTPUT)

    @property
    def configuration_name(self) -> str:
        """The name of the rule job, from the address of its output or its stop file."""
        for target in self.job.processing_output_config.outputs:
            before, _, name = target.s3_output.s3_uri.rstrip("/").rpartition("/")
            if before.endswith("/rule-output") and name:
                return name
        stop_file = self.environment.get(STOP_FILE, "").rstrip("/").rpartition("/")[2]
        return stop_file or self.environment.get(RULE, "")

    @property
    def training_job_arn(self) -> str:
        """The ARN of the training job; "" if it was not given."""
        return self.environment.get("TRAINING_JOB_ARN", "")

    @property
    def training_job_name(self) -> str | None:
        """The name of the training job, if its ARN was given."""
        return self.training_job_arn.rpartition("/")[2] or None

    @property
    def trial_name(self) -> str | None:
        """The name of the training job, from its ARN or the addresses of its data."""
        uris = [source.s3_input.s3_uri for source in self.job.processing_inputs]
        uris += [target.s3_output.s3_uri for target in self.job.processing_output_config.outputs]
        matches = (_JOB_IN_URI.fullmatch(uri.rstrip("/")) for uri in uris)
        return self.training_job_name or next((match[1] for match in matches if match), None)

    @property
    def stop_file(self) -> str | None:
        """The path of the stop file; a relative path starts at the trial."""
        path = self.environment.get(STOP_FILE)
        return str(self.place(path)) if path else None

    @property
    def other_trials(self) -> tuple[str, ...]:
        """The other trials: the numbered ones in order, then those of the list."""
        numbered = sorted(
            (int(match[1]), value)
            for name, value in self.environment.items()
            if (match := OTHER.fullmatch(name)) and value
        )
        listed = [path.strip() for path in re.split("[,;]", self.environment.get(OTHERS, ""))]
        return (*(value for _, value in numbered), *filter(None, listed))

    @property
    def mode(self) -> RuleMode:
        """What happens on a finding.

        Raises
        ------
        ParameterError
            If it is invalid.
        """
        text = self._text(MODE) or RuleMode.ENFORCE
        try:
            return RuleMode(text)
        except ValueError:
            raise ParameterError(
                f"Parameter {MODE!r} must be 'enforce' or 'observe', got {text!r}."
            ) from None

    def step(self, name: str) -> int | None:
        """Return a global step, or None if it is not given.

        Raises
        ------
        ParameterError
            If it is no whole number.
        """
        text = self._text(name)
        if text is None:
            return None
        if text.isascii() and text.isdigit():
            return int(text)
        raise ParameterError(f"Parameter {name!r} must be a whole number >= 0, got {text!r}.")

    @property
    def min_coverage(self) -> float | None:
        """The share of steps that the rule must judge; None if it is not set.

        Raises
        ------
        ParameterError
            If it is not a number from 0 to 1.
        """
        text = self._text(MIN_COVERAGE)
        return None if text is None else parse_share(text, f"Parameter {MIN_COVERAGE!r}")

    def number(self, name: str, default: float) -> float:
        """Return a number, or `default` if it is not given.

        Raises
        ------
        ParameterError
            If it is no finite number >= 0.
        """
        text = self._text(name)
        try:
            number = default if text is None else float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise ParameterError(f"Parameter {name!r} must be a finite number >= 0, got {text!r}.")
        return number

    def _text(self, name: str) -> str | None:
        text = self.environment.get(name)
        return None if text in {"", "None"} else text


def parse_share(value: object, what: str) -> float:
    """Return a number from 0 to 1.

    Raises
    ------
    ParameterError
        If it is anything else; `what` names the value in the message.
    """
    try:
        share = float(value) if isinstance(value, (str, int, float)) else -1.0
    except ValueError:
        share = -1.0
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise ParameterError(f"{what} must be a number from 0 to 1, got {value!r:.100}.")
    return share


def is_reserved(name: str) -> bool:
    """Return whether a parameter is for the runner, not for the rule."""
    return name in _RESERVED or OTHER.fullmatch(name) is not None


def is_platform(name: str) -> bool:
    """Return whether a name is one of those that the platform adds to the parameters."""
    return _PLATFORM.fullmatch(name) is not None


def read_contract() -> Contract:
    """Return the contract of this process.

    Raises
    ------
    ParameterError
        If ``processingjobconfig.json`` exists and is invalid.
    """
    contract = empty_contract()
    path = contract.place(JOB)
    try:
        job = msgspec.json.decode(path.read_bytes(), type=_Job)
    except (FileNotFoundError, NotADirectoryError):
        return contract
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as err:
        raise ParameterError(f"Job configuration '{path}' cannot be read: {err}.") from err
    if not job.environment.get(RULE):
        return Contract(contract.root, os.environ, None, job)
    return Contract(contract.root, {**os.environ, **job.environment}, job.environment, job)


def contract_of(
    environment: Mapping[str, str], declared: Mapping[str, str] | None = None
) -> Contract:
    """Return the contract of a rule outside its container; see `Contract`."""
    return Contract(Path(ML), environment, declared, _Job())


def empty_contract() -> Contract:
    """Return the contract of a process that has only its environment."""
    return Contract(Path(os.environ.get(ROOT) or ML), os.environ, None, _Job())


def is_asked_for() -> bool:
    """Return whether the environment or the job's configuration file names a rule."""
    try:
        return bool(read_contract().environment.get(RULE))
    except ParameterError:
        return True


def is_expected() -> bool:
    """Return whether a platform started this process, even if it named no rule.

    Folders that are part of the image count only if something is mounted there.
    """
    contract = empty_contract()
    if contract.environment.get(SOURCE) or any(
        contract.place(path).exists() for path in (JOB.parent, TENSORS.parent)
    ):
        return True
    places = (ML, ML / "processing", OUTPUT.parent, OUTPUT, MESSAGE.parent)
    text = MOUNTS.read_text("utf-8", "replace") if MOUNTS.exists() else ""
    mounted = {line.split(" ")[1] for line in text.splitlines()}
    return any(str(contract.place(path)) in mounted for path in places)
