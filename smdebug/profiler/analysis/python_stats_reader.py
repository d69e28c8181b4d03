"""Readers of Python profiles in a local folder or in S3."""

from rule_core.logger import get_logger
from rule_core.profiler.files.constants import (
    CPROFILE_NAME,
    CPROFILE_STATS_FILENAME,
    PYINSTRUMENT_HTML_FILENAME,
    PYINSTRUMENT_JSON_FILENAME,
    PYINSTRUMENT_NAME,
)
from rule_core.profiler.python_profiles.reader import (
    LocalPythonStatsReader,
    PythonStatsReader,
    S3PythonStatsReader,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.storage.uri import is_s3

__all__ = [
    "CPROFILE_NAME",
    "CPROFILE_STATS_FILENAME",
    "PYINSTRUMENT_HTML_FILENAME",
    "PYINSTRUMENT_JSON_FILENAME",
    "PYINSTRUMENT_NAME",
    "LocalPythonStatsReader",
    "PythonStatsReader",
    "S3PythonStatsReader",
    "StepPythonProfileStats",
    "get_logger",
    "is_s3",
]
