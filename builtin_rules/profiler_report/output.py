"""Writes the profiler report: the page, the notebook, and a JSON file of each rule."""

import json
from pathlib import Path
from typing import Final

from builtin_rules.profiler.report_file import write_report
from builtin_rules.profiler_report import notebook, page
from builtin_rules.profiler_report.gathered import Gathered
from smdebug.storage.local_output import LocalOutput
from smdebug.storage.publishing import publish

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
    publish(output, f"{FOLDER}/{notebook.NAME}", text.encode())
    html = page.render(gathered).encode("utf-8", "replace")  # names may be no UTF-8
    publish(output, f"{FOLDER}/{page.NAME}", html)
    return folder / FOLDER / page.NAME
