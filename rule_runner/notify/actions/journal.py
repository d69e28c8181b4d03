"""Journal: records the intent and the outcome of actions, safe from crashes."""

from pathlib import Path
from typing import Final

import msgspec

from rule_core.rules.actions.base import ActionState
from rule_runner.results.durable_files import Closing, JsonLines
from rule_runner.results.json_text import dump_json

ACTIONS: Final = "actions.jsonl"


class ActionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: an action and its state.

    Attributes
    ----------
    id
        The same for all attempts of the same action for the same finding.
    target
        Masked.
    at
        Time of the record, RFC 3339.
    job
        The training job to stop, once it is resolved.
    """

    id: str
    action: str
    target: str
    state: ActionState
    at: str
    detail: str
    job: str = ""


class Journal(Closing):
    """``actions.jsonl`` of one rule job, whose folder is locked.

    Parameters
    ----------
    folder
        Output folder of the rule job.

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
        self.last = {record.id: record for record in self._lines.read(ActionRecord)}

    def write(self, record: ActionRecord) -> None:
        """Add a record; return when it is on disk.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        self._lines.append(dump_json(record), durable=True)
        self.last[record.id] = record

    def close(self) -> None:
        """Close the file."""
        self._lines.close()
