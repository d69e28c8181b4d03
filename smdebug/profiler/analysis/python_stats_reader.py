"""Readers of Python profiles in a local folder or in S3."""

from rule_core.logger import get_logger as get_logger
from rule_core.profiler.files.constants import (
    CPROFILE_NAME as CPROFILE_NAME,
    CPROFILE_STATS_FILENAME as CPROFILE_STATS_FILENAME,
    PYINSTRUMENT_HTML_FILENAME as PYINSTRUMENT_HTML_FILENAME,
    PYINSTRUMENT_JSON_FILENAME as PYINSTRUMENT_JSON_FILENAME,
    PYINSTRUMENT_NAME as PYINSTRUMENT_NAME,
)
from rule_core.profiler.python_profiles.reader import (
    LocalPythonStatsReader as LocalPythonStatsReader,
    PythonStatsReader as PythonStatsReader,
    S3PythonStatsReader as S3PythonStatsReader,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats as StepPythonProfileStats
from rule_core.storage.uri import is_s3 as is_s3
