"""The notebook of the profiler report, which opens the same data in pandas."""

from typing import Any, Final

NAME: Final = "profiler-report.ipynb"
_NEEDS: Final = "It needs `pip install 'rule-runner[profiler]'`."


def document(path: str) -> dict[str, Any]:
    """Return the notebook in nbformat 4.5, without outputs.

    Parameters
    ----------
    path
        Location of the profiler data.
    """
    cells = [
        _markdown(f"# Profiler report\n\nThe data of the report next to this notebook. {_NEEDS}"),
        _markdown("## Findings of the rules"),
        _code(
            "import json\n"
            "from pathlib import Path\n\n"
            "import pandas as pd\n\n"
            "reports = {\n"
            "    path.stem: json.loads(path.read_text())\n"
            '    for path in sorted(Path("profiler-reports").glob("*.json"))\n'
            "}\n"
            'columns = ["RuleTriggered", "Violations", "Datapoints", "RuleParameters"]\n'
            "rules = pd.DataFrame.from_dict(reports, orient='index')[columns]\n"
            'rules.sort_values("RuleTriggered", ascending=False)'
        ),
        _markdown("## Resource usage"),
        _code(
            'usage = reports["OverallSystemUsage"]["Details"]\n'
            "pd.concat({name: pd.DataFrame(nodes).T for name, nodes in usage.items() if nodes})"
        ),
        _markdown("## Time spent in the framework, in percent"),
        _code(
            'framework = reports["OverallFrameworkMetrics"]["Details"]\n'
            'pd.Series(framework.get("phase", {}), dtype=float)'
        ),
        _markdown("## Raw data"),
        _code(
            "from smdebug.profiler.analysis.utils.profiler_data_to_pandas import PandasFrame\n\n"
            f"path = {path!r}\n"
            "frame = PandasFrame(path)\n"
            "system = frame.get_all_system_metrics()\n"
            "system.groupby(['nodeID', 'dimension', 'system_metric'])['value'].describe()"
        ),
        _code("events = frame.get_all_framework_metrics()\nevents.head()"),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code(text: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": text,
    }
