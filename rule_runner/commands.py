"""What the commands do, once the command line is parsed."""

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from rule_runner.config import EvaluationConfig
from rule_runner.delivery import DEADLINE_S
from rule_runner.evaluated import Evaluated, exit_code
from rule_runner.events import check_source
from rule_runner.options import EVERY_RULE, configuration
from rule_runner.results import dump_json
from rule_runner.runner import Runner
from rule_runner.show import print_results, printable, results_at
from rule_runner.sinks import EventSink
from rule_runner.terminal import LogObserver, observer
from smdebug.storage.uri import is_s3

if TYPE_CHECKING:
    from rule_runner.mirror import Mirror

_log: Final = structlog.get_logger()


def evaluate_trial(**options: Any) -> int:
    """Evaluate what the command line asks for; print the results, and return the exit code."""
    lenient = EVERY_RULE in options["rule"]
    check_source(options["event_source"])
    sinks = event_sinks(options["sink"])
    mirror = _mirror(options["output"])
    output = mirror.folder if mirror else Path(options["output"])
    with redirect_stdout(sys.stderr):  # of the files of rules
        config = configuration({**options, "output": output})
    watching = observer(quiet=options["quiet"])
    try:
        evaluated = _run_mirrored(mirror, config, sinks, watching, options["sink_deadline"])
    finally:
        watching.close()
    code = exit_code(evaluated, fail_on_issues=options["fail_on_issues"], lenient=lenient)
    shown = str if mirror is None or mirror.problem else mirror.shown
    _print(evaluated, options["form"], config, code, shown)
    if options["form"] in {"junit", "sarif"}:  # which have no place for them
        for note in config.notes:
            _log.warning("evaluation_noted", reason=note)
    if evaluated.unwritten:
        print(printable(evaluated.unwritten), file=sys.stderr)  # noqa: T201 - after the results
    for one in evaluated.undelivered:  # they are sent again from the folder that is here
        print(printable(one.sentence(str(config.output))), file=sys.stderr)  # noqa: T201
    return code


def event_sinks(texts: Sequence[str]) -> list[EventSink]:
    """Return the sinks that are asked for."""
    if not texts:
        return []
    from rule_runner.sinks.parsing import parse_sinks  # noqa: PLC0415 - imports every sink

    return parse_sinks(texts, sys.stdout)


def _mirror(output: str) -> "Mirror | None":
    """Return what uploads an output folder; None if it is one of this machine."""
    if not is_s3(output):
        return None
    from rule_runner.mirror import Mirror  # noqa: PLC0415 - only for S3

    return Mirror(output)


def _run_mirrored(
    mirror: "Mirror | None",
    config: EvaluationConfig,
    sinks: Sequence[EventSink],
    watching: LogObserver,
    sink_deadline: float,
) -> Evaluated:
    """Evaluate; what is written for an address in S3 is uploaded meanwhile."""
    if mirror is None:
        return run(config, sinks, watching, sink_deadline)
    with mirror.of(config):
        evaluated = run(config, sinks, watching, sink_deadline)
        mirror.keep = bool(evaluated.undelivered)
    return replace(evaluated, unwritten=evaluated.unwritten or mirror.problem)


def run(
    config: EvaluationConfig,
    sinks: Sequence[EventSink],
    watching: LogObserver,
    sink_deadline: float = DEADLINE_S,
) -> Evaluated:
    """Evaluate, and write the report; what rules print goes to stderr, not among the results."""
    with redirect_stdout(sys.stderr):
        evaluated = Runner(
            config, sinks=sinks, sink_deadline=sink_deadline, observer=watching
        ).run()
    if evaluated.unwritten:
        return evaluated
    folders = [config.folder_of(rule) for rule in config.rules]
    return replace(
        evaluated, report=try_report(folders, config.output, evaluated.result.trial.name)
    )


def try_report(folders: Sequence[Path], output: Path, title: str) -> Path | None:
    """Write the page of evaluations that are over; that it cannot be written costs no verdict."""
    from rule_runner.report import write_report  # noqa: PLC0415 - only when there are results

    try:
        return write_report(folders, output, title)
    except Exception as err:  # noqa: BLE001 - results and verdicts are there
        _log.warning("report_not_written", path=str(output), reason=printable(err))
        return None


def _print(
    evaluated: Evaluated,
    form: str,
    config: EvaluationConfig,
    code: int,
    shown: Callable[[str], str],
) -> None:
    """Print the results: stdout carries nothing else; places are as they are `shown`."""
    result = evaluated.result
    match form:
        case "json":
            print(dump_json(result, indent=2))  # noqa: T201 - stdout carries results
        case "junit":
            from rule_runner.junit import junit  # noqa: PLC0415 - only when it is asked for

            print(junit(result))  # noqa: T201
        case "sarif":
            from rule_runner.sarif import sarif  # noqa: PLC0415 - likewise

            print(sarif(result, [rule.loaded for rule in config.rules], code))  # noqa: T201
        case _:
            places = [results_at(config.folder_of(rule) for rule in config.rules)]
            if evaluated.report is not None:
                places.append(f"Report: {printable(evaluated.report)}")
            print_results(result, [shown(place) for place in places])
