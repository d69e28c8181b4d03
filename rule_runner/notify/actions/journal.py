"""Journal: records the intent and the outcome of actions, safe from crashes."""

import threading
from pathlib import Path

import msgspec

from rule_core.failures import OnError
from rule_core.rules.actions.base import ActionState
from rule_runner.results.durable_files import Closing, JsonLines
from rule_runner.results.file_names import ACTIONS
from rule_runner.results.json_text import dump_json


class ActionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: an action and its state.

    Attributes
    ----------
    id
        The same for all attempts of the same action for the same finding.
    configuration_name
        The name of the rule job.
    target
        Masked.
    at
        Time of the record, RFC 3339.
    job
        The training job to stop, once it is resolved.
    """

    id: str
    configuration_name: str = ""
    action: str
    target: str
    state: ActionState
    at: str
    detail: str
    job: str = ""


class Journal(Closing):
    """``actions.jsonl`` of an evaluation, whose output folder is locked.

    Threads of several rule jobs may write.

    Parameters
    ----------
    folder
        The output folder.

    Attributes
    ----------
    last
        The last record of each action, by its id.

    Raises
    ------
    OutputError
        If the file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._lines = JsonLines(folder / ACTIONS)
        self._lock = threading.Lock()
        with OnError(self.close):
            self.last = {record.id: record for record in self._lines.read(ActionRecord)}

    def write(self, record: ActionRecord) -> None:
        """Add a record; return when it is on disk.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        with self._lock:
            self._lines.append(dump_json(record), durable=True)
            self.last[record.id] = record

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
