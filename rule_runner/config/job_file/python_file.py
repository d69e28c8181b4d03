"""Runs a Python job file, and returns the list of rules in it."""

import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from rule_runner.config.documents import read_text
from rule_runner.config.job_file.sdk_objects import is_rule
from rule_runner.errors import ENDS_ITSELF, JobError, line_of, user_code
from rule_runner.text_files import shown

SUFFIX: Final = ".py"
NAME: Final = "rules"
# Not __main__: code under that condition is for running the file as a script.
_RUN_NAME: Final = "rule_runner_job"
_SDK: Final = ("sagemaker", "smdebug_rulesconfig")  # packages of the configuration classes


def rules_of_file(path: Path) -> Sequence[object]:
    """Run a Python file, and return its list `rules`, or the only list of rules in it.

    Modules beside the file can be imported by it.

    Raises
    ------
    JobError
        If it cannot be read, raises, or makes no such list, or several.
    """
    return _list_in(run_file(path), shown(path))


def run_file(path: Path, noun: str = "Job file") -> dict[str, Any]:
    """Run a Python file, which messages call a `noun`; return what it defines at its top level.

    Modules beside the file can be imported by it.

    Raises
    ------
    JobError
        If it cannot be read, or raises.
    """
    read_text(path, noun)
    name, path = f"{noun} {shown(path)}", path.resolve()

    def hint(err: BaseException) -> str:
        missing = (isinstance(err, ImportError) and err.name) or ""
        if missing.partition(".")[0] not in _SDK:
            return ""
        return " The SDK is not installed: import these names from rule_runner.debugger."

    with user_code(JobError, name, partial(line_of, path=path), hint), _importable(path.parent):
        try:
            return runpy.run_path(str(path), run_name=_RUN_NAME)
        except SyntaxError as err:
            if err.filename != str(path):
                raise
            raise JobError(f"{name} does not parse: line {err.lineno}: {err.msg}.") from err
        except SystemExit as err:
            raise JobError(f"{name} ends the program {line_of(err, path)}. {ENDS_ITSELF}") from err


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules in a folder be found inside the block."""
    before = [*sys.path]
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


def _list_in(names: Mapping[str, object], name: str) -> Sequence[object]:
    if NAME in names:
        rules = names[NAME]
        if isinstance(rules, (list, tuple)):
            return rules
        raise JobError(
            f"{NAME!r} in job file {name} must be a list of rules, got {type(rules).__name__}."
        )
    lists = {
        id(value): (key, value)
        for key, value in names.items()
        if isinstance(value, (list, tuple)) and value and all(map(is_rule, value))
    }
    match [*lists.values()]:
        case [(_, rules)]:
            return rules
        case []:
            msg = f"Job file {name} defines no list of rules. Name the list {NAME!r}."
        case several:
            listed = ", ".join(repr(key) for key, _ in several)
            msg = (
                f"Job file {name} defines {len(several)} lists of rules: {listed}. "
                f"Name the one to evaluate {NAME!r}."
            )
    raise JobError(msg)
