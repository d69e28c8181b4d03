"""Where the files of a trial lie: keys relative to its root, and the names inside them."""

from rule_core.format.paths import END_OF_JOB

__all__ = ["END_OF_JOB"]
