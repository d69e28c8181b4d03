"""Known deviations: verdicts on profiles that are not what is known of the job, and why."""

from collections.abc import Mapping
from typing import Final

# By rule and job; docs/detection.md lists them.
KNOWN_PROFILES: Final[Mapping[tuple[str, str], str]] = {}
