"""baseline make: writes the bands of good runs of one recipe to a file."""

from collections.abc import Sequence
from pathlib import Path

from builtin_rules.statistics.baselines.baseline_file import make_baseline
from rule_core.exceptions import SMDebugError
from rule_core.sources.options import SourceOptions
from rule_core.storage.publish import publish
from rule_core.storage.uri import is_s3, open_output
from rule_core.trials.run_configuration import run_configuration
from rule_runner.errors import OutputError, TrialError, counted, shortened, translated
from rule_runner.escape import print_lines
from rule_runner.loading.trial_lists import list_trials
from rule_runner.loading.trials import read_trial
from rule_runner.results.durable_files import output_errors, replace_durably


def make(paths: Sequence[str], output: str, sources: SourceOptions) -> None:
    """Write the baseline of the runs at and below `paths` to a file, and print what it holds.

    Raises
    ------
    OutputError
        If the file cannot be written.
    TrialError
        If a path holds no run, or the runs have nothing in common or are not good.
    """
    listed, problems, _ = list_trials(paths, sources=sources)
    trials = [read_trial(run.folder.path, sources)[0] for run in listed if run.folder.tensors]
    if problems or not trials:
        raise TrialError(" ".join(problems) or "The runs have profiler data only.")
    with translated(TrialError, SMDebugError):
        baseline = make_baseline(trials)
    _write(output, baseline.to_json())
    settings = {name for trial in trials for name in run_configuration(trial)}
    differing = shortened(sorted(settings - baseline.configuration.keys())) or "none"
    count = len(baseline.configuration)
    print_lines([f"{output}: {counted(len(trials), 'run')}, aligned by {baseline.axis}."])
    print_lines([f"Metrics: {shortened([metric.name for metric in baseline.metrics])}."])
    print_lines([f"Settings: {count} in common; not compared: {differing}."])


def _write(output: str, content: str) -> None:
    """Write a file at a path or an ``s3://`` address."""
    path = Path(output)
    if not is_s3(output):
        with output_errors(path):
            replace_durably(path, content, path.with_name(f".{path.name}.tmp"))
        return
    folder, _, name = output.strip().rpartition("/")
    with translated(OutputError, OSError, SMDebugError):
        publish(open_output(folder), name, content.encode())
