"""CreateXgboostReport: writes a report on the training of an XGBoost model."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from builtin_rules.reports.report_writer import ReportWriter
from builtin_rules.reports.xgboost.documents import documents
from builtin_rules.reports.xgboost.history import RoundHistory
from builtin_rules.reports.xgboost.reading import OF_XGBOOST, read_round
from smdebug.rules import Rule
from smdebug.rules.extensions import Clock, LocalOutput, Severity, SystemClock, publish

FOLDER: Final = "xgboost-reports"


class CreateXgboostReport(Rule):
    """Never met: this rule only writes a report.

    It writes the self-contained page `xgboost_report.html` and its numbers as
    `xgboost-reports/*.json` to the output folder of the rule job, or in Python to the folder
    `xgboost_report` in the working directory. The report is written at the first step with XGBoost
    data, then at most once a minute, and after the last step. Labels and predictions of all workers
    are combined, metrics are averaged. Memory is bounded: when a series exceeds 1000 points, every
    second one is dropped.

    Plots of labels and predictions support the objectives `reg:squarederror`, `binary:logistic` and
    `multi:softmax`; for others the page shows a warning instead. If the objective was not saved, it
    is inferred from labels and predictions. Non-finite rows are left out, as are labels and
    predictions that differ in number; the page says so.
    """

    READS = "the collections metrics, feature_importance, hyperparameters, predictions and labels."
    SAVED = ("metrics", "feature_importance", "hyperparameters", "predictions", "labels")
    PARAMS = ()
    SEVERITY = Severity.NOTE

    required_inputs = (OF_XGBOOST,)

    def __init__(self, base_trial: Any, *, clock: Clock | None = None) -> None:
        super().__init__(base_trial)
        self.clock = clock or SystemClock()
        self._history = RoundHistory()
        self._of_xgboost = False
        self._writer = ReportWriter(self._write, self.clock, self.logger)
        self._is_current = True

    def invoke_at_step(self, step: int) -> bool:
        """Judge nothing: add global step `step`, and write the report if it is due."""
        self._of_xgboost = self._of_xgboost or OF_XGBOOST.is_in(self.base_trial)
        round_data = read_round(self.base_trial, step) if self._of_xgboost else None
        if round_data is None or round_data.is_empty:
            return self.not_judged("no XGBoost data at this step")
        self._history.add(round_data)
        self._is_current = self._writer.refresh()
        return False

    def invoke_at_end(self, step: int) -> bool:
        """Write the final report after the last step, global step `step`.

        Raises
        ------
        SMDebugRuntimeError
            If there is data, but no report could be written.
        """
        del step
        if not self._is_current:
            self._is_current = self._writer.finish(self.folder)
        return False

    @property
    def folder(self) -> Path:
        """The folder of the report."""
        return Path("xgboost_report" if self.output_dir is None else self.output_dir)

    def _write(self) -> None:
        # Imported here, as only reports need the template engine.
        from builtin_rules.reports.xgboost import page

        contents = documents(self._history)
        made_at = datetime.fromtimestamp(self.clock.time(), UTC)
        output = LocalOutput(self.folder)
        for name, document in contents.items():
            text = json.dumps(document, indent=1, allow_nan=False)
            publish(output, f"{FOLDER}/{name}", text.encode())
        html = page.render(self.base_trial.name, self._history, contents, made_at)
        # Names may not be valid Unicode.
        publish(output, page.NAME, html.encode("utf-8", "replace"))
