"""tag_run: shows verdicts where people look at a run, in TensorBoard and MLflow."""

import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from rule_core.exceptions import SMDebugError
from rule_core.format.summary_encoder import text_record, version_record
from rule_core.reading.source_index import SourceIndex
from rule_core.sources.address import TrialAddress
from rule_core.sources.tensorboard import PREFIX, VERDICTS, TensorBoardSource
from rule_core.storage.base import TrialOutput
from rule_core.storage.publish import publish
from rule_core.storage.uri import open_output
from rule_runner.errors import RuleRunnerError
from rule_runner.escape import printable
from rule_runner.loading.trials import open_trial
from rule_runner.logs import get_logger
from rule_runner.report.text import coverage, evidence, verdict
from rule_runner.results.schema import EvaluationResult, RuleResult, in_order

EVIDENCE_LIMIT: Final = 5
NOTE: Final = "mlflow.note.content"  # the description of a run, as Markdown
NOTE_BYTES: Final = 5000  # tags of MLflow hold at most 8000 characters
_HEADING: Final = "### rule-runner"
_OWN_NOTE: Final = re.compile(rf"\n*{_HEADING}\n.*?(?=\n#|\Z)", re.DOTALL)
_UNSAFE: Final = re.compile(r"[^\w.-]+", re.ASCII)
NO_PLACE: Final = (
    "Only runs of TensorBoard and MLflow can show verdicts; this trial is neither. The results are "
    "in the output folder."
)
_OFFLINE: Final = re.compile(r"run-(\w+)\.wandb")
_log: Final = get_logger(__name__)


@runtime_checkable
class TaggableRun(Protocol):
    """A run of MLflow in any of its stores."""

    def tag(self, name: str) -> str:
        """Return a tag of the run; "" if it has none of this name."""
        ...

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags of the run."""
        ...


def tag_run(trial: TrialAddress, result: EvaluationResult) -> list[str]:
    """Write the verdicts to the run that was judged; return what to tell the user.

    A failure is logged and changes no verdict.
    """
    try:
        return _tag(trial, result)
    except (SMDebugError, RuleRunnerError, OSError) as err:
        reason = repr(err) if isinstance(err, OSError) else str(err)
        _log.warning("run_not_tagged", trial=printable(trial), reason=printable(reason))
        return []


def _tag(trial: TrialAddress, result: EvaluationResult) -> list[str]:
    index = open_trial(trial).index
    notes = []
    for source in index.sources if isinstance(index, SourceIndex) else ():
        if isinstance(source, TensorBoardSource):
            where = _tag_event_files(open_output(index.store.uri), source.folder, result)
            notes.append(f"Verdicts for TensorBoard: {where}")
        elif isinstance(source, TaggableRun):
            source.set_tags(_mlflow_tags(result, source.tag(NOTE)))
            notes.append(f"Verdicts are tags of the run: {source.description}")
    notes += _wandb_commands(trial, result)
    if not notes:
        _log.warning("run_not_tagged", trial=printable(trial), reason=NO_PLACE)
    return notes


def _tag_event_files(output: TrialOutput, folder: str, result: EvaluationResult) -> str:
    """Write an events file of its own with a text for each rule; return its key.

    Earlier ones are removed. TensorBoard reads files in the order of their names, so that the new
    one has a later name than any other.
    """
    now = time.time()
    records = [version_record(now)]
    for rule in in_order(result.rules):
        text = "\n".join(_lines(rule))
        name = f"rule_runner/{rule.configuration_name}"
        records.append(text_record(rule.step or 0, now, name, text))
    earlier = [key for key in output.list_keys(folder + PREFIX) if key.endswith(VERDICTS)]
    key = f"{folder}{PREFIX}{int(now)}{VERDICTS}"
    publish(output, key, *records)
    for old in earlier:
        if old != key:
            output.remove(old)
    return f"{output.uri.rstrip('/')}/{key}"


def _mlflow_tags(result: EvaluationResult, note: str) -> dict[str, str]:
    """Return the tags of a run, and its description with the verdicts at the end."""
    rules = in_order(result.rules)
    tags = {
        f"rule_runner.{_UNSAFE.sub('_', rule.configuration_name)}": verdict(rule) for rule in rules
    }
    lines = [_HEADING, "", *(line for rule in rules for line in _lines(rule, rule.rule))]
    own = "\n".join(lines)[:NOTE_BYTES]
    others = _OWN_NOTE.sub("", note).rstrip()
    if len(others) + len(own) < NOTE_BYTES:
        tags[NOTE] = f"{others}\n\n{own}".lstrip()
    return tags


def _lines(rule: RuleResult, name: str = "") -> Iterator[str]:
    """Yield the verdict and the first findings of a rule, in Markdown."""
    yield f"**{name}{': ' if name else ''}{verdict(rule)}**, {coverage(rule)}  "
    for finding in rule.findings[:EVIDENCE_LIMIT]:
        yield f"- {evidence(finding, rule.unit)}"


def _wandb_commands(trial: TrialAddress, result: EvaluationResult) -> Sequence[str]:
    """Return what to run for the verdicts of a run of W&B that is beside the trial."""
    folder = Path(trial.path)
    places = [folder, *folder.parents][:3]
    patterns = ("run-*.wandb", "wandb/latest-run/run-*.wandb")
    files = (path for place in places for pattern in patterns for path in place.glob(pattern))
    name = next((path.name for path in files), "")
    match = _OFFLINE.fullmatch(name)
    if match is None:
        return []
    verdicts = {f"rule_runner/{rule.configuration_name}": verdict(rule) for rule in result.rules}
    program = (
        f"import wandb; run = wandb.init(id={match[1]!r}, resume='must'); "
        f"run.summary.update({verdicts!r})"
    )
    return [f"For W&B, run: python -c {shlex.quote(program)}"]
