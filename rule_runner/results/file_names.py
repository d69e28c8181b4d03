"""Names of files and folders in the output folder of an evaluation."""

import unicodedata
from typing import Final

from rule_runner.errors import UsageError

RESULTS: Final = "results.json"
FINDINGS: Final = "findings.jsonl"
EVENTS: Final = "events.jsonl"
ACTIONS: Final = "actions.jsonl"
DEAD_LETTERS: Final = "dead-letters.jsonl"
MEASUREMENTS: Final = "measurements.json"
ACKNOWLEDGEMENTS: Final = "acknowledgements.jsonl"
REPORT: Final = "report.html"
# Version 0.1.0 wrote one of these for each rule job, in the folder of the evaluation if it had
# one rule, otherwise in a folder with the name of the rule job.
OLD_RESULT: Final = "rule_result.json"
DEFAULT_OUTPUTS: Final = "rule-output"  # the folder of outputs that no option names
# What an evaluation writes; the results come first, because they identify the folder as ours.
EVALUATION_FILES: Final = (RESULTS, FINDINGS, MEASUREMENTS, EVENTS, ACTIONS, DEAD_LETTERS)
OWN_FILES: Final = frozenset({*EVALUATION_FILES, ACKNOWLEDGEMENTS, REPORT, OLD_RESULT})
NAME_LIMIT: Final = 255  # bytes of a file name


def safe_name(name: str) -> str:
    """Return `name` if it can name a folder inside the output folder.

    Raises
    ------
    UsageError
        If it is empty, longer than 255 bytes, begins with a dot, holds a slash, a control
        character or a lone surrogate, or is the name of a file with results.
    """
    odd = any(char == "/" or unicodedata.category(char) in {"Cc", "Cs"} for char in name)
    if not name or name.startswith(".") or odd or len(name.encode()) > NAME_LIMIT:
        raise UsageError(
            "Name of a rule job must be 1 to 255 bytes, without '/' and control characters and "
            f"not beginning with '.', got {name!r}."
        )
    if name in OWN_FILES:
        raise UsageError(
            f"Name of a rule job must not be that of a results file, got {name!r}. Choose another."
        )
    return name
