"""Write the profiler report: the page, the notebook, and one JSON file per rule."""

import json
from pathlib import Path

from builtin_rules.profiler.statistics.report_file import OUTPUT_FOLDER, write_report
from builtin_rules.reports.profiler import notebook, page
from builtin_rules.reports.profiler.report_data import ReportData
from smdebug.rules.extensions import LocalOutput, publish


def write(folder: Path, data: ReportData) -> Path:
    """Write all files of the report below a folder, each atomically, and return the page.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    for rule in data.rules:
        write_report(folder, rule.name, rule.report)
    output = LocalOutput(folder)
    text = json.dumps(notebook.document(data.path), indent=1)
    publish(output, f"{OUTPUT_FOLDER}/{notebook.NAME}", text.encode())
    html = page.render(data).encode("utf-8", "replace")  # names may not be valid Unicode
    publish(output, f"{OUTPUT_FOLDER}/{page.NAME}", html)
    return folder / OUTPUT_FOLDER / page.NAME
