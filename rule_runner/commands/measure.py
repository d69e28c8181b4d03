"""measure: measures a shard of a trial, and writes the measures for an evaluation elsewhere."""

from collections.abc import Sequence
from typing import Final

from rule_core.exceptions import SMDebugError
from rule_core.format.paths import StepFile
from rule_core.reading.measuring.block import PartRequest, earlier_files, measure_block
from rule_core.reading.measuring.stored import SUFFIX, MeasuredPart, PartIdentities, store_block
from rule_core.reading.native_index import NativeIndex
from rule_core.rules.wants import DeclaredWants
from rule_core.storage.base import TrialOutput
from rule_core.storage.publish import publish
from rule_core.storage.uri import open_output
from rule_core.trials.trial import Trial
from rule_runner.batch.shards import Shard
from rule_runner.config.model import EvaluationConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.invoker_factory import make_invoker
from rule_runner.engine.measuring import declared_measures
from rule_runner.errors import TrialError, translated, unwritable
from rule_runner.loading.parameters import bind
from rule_runner.loading.trials import check_is_there, open_trial
from rule_runner.results.versions import versions

STEPS_PER_UNIT: Final = 128
PARTS_PER_FILE: Final = 256


def measure_trial(request: EvaluationRequest, shard: Shard, folder: str) -> None:
    """Measure a shard of a trial for the requested rules.

    Parameters
    ----------
    folder
        A folder or address for the measurement files.

    Raises
    ------
    ClientError
        If a rule or the trial cannot be read.
    UsageError
        If fields of the request contradict each other.
    OutputError
        If the folder cannot be written.
    """
    config = resolve(request)
    trial = open_trial(config.trial, config.trial_name, config.window, config.sources)
    check_is_there(trial)
    index = trial.index
    if not isinstance(index, NativeIndex):
        raise TrialError(
            f"Trial {trial.path!r} is in a format that only 'rule-runner evaluate' measures."
        )
    declared, undeclared = _declared(config, trial)
    with translated(TrialError, SMDebugError), unwritable(f"Folder {folder!r}"):
        own = _own_parts(index, shard, declared)
        output, files, count = open_output(folder), 0, 0
        for parts in own:
            key = f"{shard.index}-of-{shard.count}/{files:06d}{SUFFIX}"
            measured = _measure(index, declared, parts, output, key)
            if measured is not None:
                files, count = files + 1, count + measured
    print(f"Measured {count} parts of steps as shard {shard}: {files} files in {folder}")
    for name in undeclared:
        print(f"Rule {name!r} declares nothing that can be measured in advance.")


def _declared(config: EvaluationConfig, trial: Trial) -> tuple[DeclaredWants, list[str]]:
    """Return what the rules declare, and the names of those that declare nothing."""
    declared = {}
    for rule in config.rules:
        if rule.profiler or rule.is_rejected:
            continue
        trials = [trial, *(open_trial(path) for path in config.others_of(rule))]
        invoker = make_invoker(rule, bind(rule.loaded, rule.parameters), trials, None)
        declared[rule.configuration_name] = declared_measures(rule, invoker)
    measures = [measure for measures in declared.values() for measure in measures or ()]
    undeclared = [name for name, measures in declared.items() if measures is None]
    return DeclaredWants(measures), undeclared


def _own_parts(
    index: NativeIndex, shard: Shard, declared: DeclaredWants
) -> Sequence[Sequence[StepFile]]:
    """Load the index files of a shard; return its parts, as they are measured together."""
    by_worker: dict[str, list[StepFile]] = {}
    for part in sorted(index.list_parts()):
        by_worker.setdefault(part.worker, []).append(part)
    units = [
        (worker, start, min(start + STEPS_PER_UNIT, len(parts)))
        for worker, parts in sorted(by_worker.items())
        for start in range(0, len(parts), STEPS_PER_UNIT)
    ][shard.index :: shard.count]
    back = max((steps_back for _, steps_back in declared.wants), default=0)
    needed = {
        part
        for worker, start, stop in units
        for part in by_worker[worker][max(start - 2 * back, 0) : stop]
    }
    index.read_only(needed)
    index.refresh(whole=True)
    return [
        by_worker[worker][at : min(at + PARTS_PER_FILE, stop)]
        for worker, start, stop in units
        for at in range(start, stop, PARTS_PER_FILE)
    ]


def _measure(
    index: NativeIndex,
    declared: DeclaredWants,
    parts: Sequence[StepFile],
    output: TrialOutput,
    key: str,
) -> int | None:
    """Write a file with the measures of parts; return how many it has, None if none are wanted."""
    choose = declared.chooser(index)
    files = [
        file
        for step, worker in parts
        if (file := index.files.get(step, {}).get(worker)) is not None
    ]
    wants = [(file, choose(file)) for file in files if file.event_key is not None]
    requests = [
        PartRequest(file, earlier_files(file, chosen, index.files, index.steps), chosen)
        for file, chosen in wants
        if chosen
    ]
    if not requests:
        return None
    measured = _identified(requests, PartIdentities(index.store))
    content = measure_block(index.store.uri, declared.wants, requests)
    version = versions()["rule-runner"]
    publish(output, key, store_block(version, declared.wants, measured, content))
    return len(measured)


def _identified(requests: Sequence[PartRequest], identities: PartIdentities) -> list[MeasuredPart]:
    """Return the requested parts, with the identities of all files that they are measured from."""
    needed = {
        id(file): file for request in requests for file in (request.file, *request.earlier.values())
    }
    now = dict(zip(needed, identities.of([*needed.values()]), strict=True))
    parts = []
    for request in requests:
        identity = now[id(request.file)]
        earlier = [(file.step, now[id(file)]) for file in request.earlier.values()]
        existing = tuple((step, each) for step, each in earlier if each is not None)
        if identity is not None and len(existing) == len(earlier):
            parts.append(MeasuredPart(request.file.step, request.file.worker, identity, existing))
    return parts
