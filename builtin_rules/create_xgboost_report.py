"""CreateXgboostReport: writes a report about the training of an XGBoost model."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from builtin_rules.xgboost_report.documents import documents
from builtin_rules.xgboost_report.history import History
from builtin_rules.xgboost_report.reading import read_round
from smdebug.core.clock import Clock, SystemClock
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.rules import Page, Rule
from smdebug.storage.local_output import LocalOutput
from smdebug.storage.publishing import publish

FOLDER: Final = "xgboost-reports"
REFRESH_S: Final = 60.0


class CreateXgboostReport(Rule):
    """Met when never: this rule writes a report and finds nothing.

    It writes `xgboost_report.html`, which needs no other file and no network, and its numbers to
    `xgboost-reports/*.json`: into the output folder of the rule job, or in Python into the folder
    `xgboost_report` here. They are written at the first step with data of XGBoost, afterwards at
    most once a minute, and when the last step is judged. Labels and predictions of all workers are
    taken together, metrics averaged. The state is bounded: of more than 1000 points of a series
    every second one is dropped.

    The plots of labels and predictions are those of objectives `reg:squarederror`,
    `binary:logistic` and `multi:softmax`; for others the page holds a warning in their place. Where
    no objective was saved it is told from the labels and predictions. Rows that are not finite are
    left out, and labels and predictions of different numbers too; the page says so.
    """

    READS = "the collections metrics, feature_importance, hyperparameters, predictions and labels."
    PARAMS = ()
    PAGE = Page(
        why="""
        One page tells how the training went: metrics, confusion, errors and what the model looks
        at. It can be kept, sent and printed.
        """,
        save="""
        The collections of the XGBoost hook, every fifth round:

            Hook(
                out_dir,
                include_collections=[
                    "metrics", "feature_importance", "hyperparameters", "predictions", "labels"
                ],
                hyperparameters=params,
                train_data=train,
                validation_data=validation,
                save_config=SaveConfig(save_interval=5),
            )
        """,
        missing="""
        What was not saved has no section. A step without data of XGBoost is skipped; a trial
        without any gets no report.
        """,
        remedy="""
        - It never fires. Open `xgboost_report.html` in the output folder.
        """,
        limits="""
        Objectives other than the three have no plots of labels and predictions. Metrics named
        without a hyphen are no metrics of XGBoost and are left out.
        """,
    )

    def __init__(self, base_trial: Any, *, clock: Clock | None = None) -> None:
        super().__init__(base_trial)
        self.clock = clock or SystemClock()
        self._history = History()
        self._tried_at: float | None = None
        self._written = False
        self._current = True

    def invoke_at_step(self, step: int) -> bool:
        """Judge nothing: take in global step `step`, and write the report if it is time."""
        found = read_round(self.base_trial, step)
        if found.is_empty:
            return self.not_judged("no data of XGBoost at this step")
        self._history.add(found)
        self._current = False
        now = self.clock.monotonic()
        if self._tried_at is None or now - self._tried_at >= REFRESH_S:
            self._tried_at = now
            self._try_to_write()
        return False

    def invoke_at_end(self, step: int) -> bool:
        """Write the report as it is after the last step, global step `step`.

        Raises
        ------
        SMDebugRuntimeError
            If there is something to report, and no report at all could be written.
        """
        del step
        if not self._current:
            reason = self._try_to_write()
            if reason and not self._written:
                msg = f"No report could be written to {str(self.folder)!r}: {reason}."
                raise SMDebugRuntimeError(msg)
        return False

    @property
    def folder(self) -> Path:
        """Where the report is written."""
        return Path("xgboost_report" if self.output_dir is None else self.output_dir)

    def _try_to_write(self) -> str:
        """Write the report; return what hinders it."""
        try:
            self._write()
        except OSError as err:
            self.logger.warning("Report not written: %s", err)
            return err.strerror or str(err)
        self._current = self._written = True
        return ""

    def _write(self) -> None:
        # Imported here: the page's template engine is needed by nobody else at start-up.
        from builtin_rules.xgboost_report import page  # noqa: PLC0415

        found = documents(self._history)
        made_at = datetime.fromtimestamp(self.clock.time(), UTC)
        output = LocalOutput(self.folder)
        for name, document in found.items():
            text = json.dumps(document, indent=1, allow_nan=False)
            publish(output, f"{FOLDER}/{name}", text.encode())
        html = page.render(self.base_trial.name, self._history, found, made_at)
        publish(output, page.NAME, html.encode("utf-8", "replace"))  # names may be no UTF-8
