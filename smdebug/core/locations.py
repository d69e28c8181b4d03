"""Names of files in a trial."""

from rule_core.format.paths import END_OF_JOB

__all__ = ["END_OF_JOB"]
