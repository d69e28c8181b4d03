"""Journal: what actions were about to be carried out, and what came of them, safe from crashes."""

from pathlib import Path
from typing import Final

import msgspec

from rule_runner.durable import Closing, JsonLines
from rule_runner.results import dump_json
from smdebug.rules.action.base import ActionState

ACTIONS: Final = "actions.jsonl"


class ActionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: an action and how far it came.

    Attributes
    ----------
    id
        The same for the same action of the same finding, however often it is tried.
    target
        Masked.
    at
        When, RFC 3339.
    job
        The one training job that is stopped, once it is settled.
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
        self.last = {one.id: one for _, one in self._lines.read(ActionRecord)}

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
