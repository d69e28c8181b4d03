"""Writes the profiler report: the page, the notebook, and a JSON file of each rule."""

import json
from pathlib import Path
from typing import Final

from builtin_rules.profiler.report_file import write_report
from builtin_rules.profiler_report import notebook, page
from builtin_rules.profiler_report.gathered import Gathered
from smdebug.storage.local_output import LocalOutput

FOLDER: Final = "profiler-output"


def write(folder: Path, gathered: Gathered) -> Path:
    """Write all files of the report below a folder, each whole or not at all; return the page.

    Raises
    ------
    OSError
        If one cannot be written.
    """
    for rule in gathered.rules:
        write_report(folder, rule.name, rule.report)
    output = LocalOutput(folder)
    text = json.dumps(notebook.document(gathered.path), indent=1)
    _publish(output, f"{FOLDER}/{notebook.NAME}", text)
    _publish(output, f"{FOLDER}/{page.NAME}", page.render(gathered))
    return folder / FOLDER / page.NAME


def _publish(output: LocalOutput, key: str, text: str) -> None:
    """Write a whole file, then give it its name; names that are no UTF-8 lose what is none."""
    draft = output.open(key)
    try:
        draft.write(text.encode("utf-8", "replace"))
        draft.publish()
    except OSError:
        draft.discard()
        raise
