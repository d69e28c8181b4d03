"""Constants and environment variables of profiler files, under their smdebug names."""

import math
import os
from collections.abc import Mapping
from typing import Final

from rule_core.environment import number

# -- folders and files ------------------------------------------------------------------------

DEFAULT_SYSTEM_PROFILER_PREFIX: Final = "system"
DEFAULT_PREFIX: Final = "framework/pevents"
TRACE_DIRECTORY_FORMAT: Final = "%Y%m%d%H"
BASE_FOLDER_DEFAULT: Final = "/opt/ml/output/profiler"
CONFIG_PATH_DEFAULT: Final = "/opt/ml/input/config/profilerconfig.json"
TF_DATALOADER_START_FLAG_FILENAME: Final = "tf_dataloader_start_flag.tmp"
TF_DATALOADER_END_FLAG_FILENAME: Final = "tf_dataloader_end_flag.tmp"

# -- endings of file names --------------------------------------------------------------------

PYTHONTIMELINE_SUFFIX: Final = "pythontimeline.json"
MODELTIMELINE_SUFFIX: Final = "model_timeline.json"
TENSORBOARDTIMELINE_SUFFIX: Final = "trace.json.gz"
HOROVODTIMELINE_SUFFIX: Final = "horovod_timeline.json"
SMDATAPARALLELTIMELINE_SUFFIX: Final = "smdataparallel_timeline.json"
MERGEDTIMELINE_SUFFIX: Final = "merged_timeline.json"
CPROFILE_STATS_FILENAME: Final = "python_stats"
PYINSTRUMENT_JSON_FILENAME: Final = "python_stats.json"
PYINSTRUMENT_HTML_FILENAME: Final = "python_stats.html"

# -- names of events --------------------------------------------------------------------------

PT_DATALOADER_WORKER: Final = "DataLoaderWorker"
PT_DATALOADER_ITER: Final = "DataLoaderIter"
PT_DATALOADER_INITIALIZE: Final = "DataLoaderIterInitialize"
TF_DATALOADER_ITER: Final = "DataIterator"
TF_METRICS_PREFIX: Final = "aws_marker-"
CPROFILE_NAME: Final = "cprofile"
PYINSTRUMENT_NAME: Final = "pyinstrument"
# Rules and smdebug's analysis take system metrics of type "gpu" for utilization only.
GPU_EXTRA: Final = "gpu_extra"

# -- numbers ----------------------------------------------------------------------------------

CONVERT_TO_MICROSECS: Final = 1_000_000
CONVERT_MICRO_TO_NS: Final = 1000
MAX_FILE_SIZE_DEFAULT: Final = 10_485_760  # bytes
CLOSE_FILE_INTERVAL_DEFAULT: Final = 60  # seconds
FILE_OPEN_FAIL_THRESHOLD_DEFAULT: Final = 50
PYTHON_PROFILING_START_STEP_DEFAULT: Final = 9
PROFILING_NUM_STEPS_DEFAULT: Final = 1
PROFILER_DURATION_DEFAULT: Final = math.inf

# Files are selected for a time range widened by this buffer: events are written when they end, and
# clocks of nodes differ.
ENV_TIME_BUFFER: Final = "TIME_BUFFER_MICROSECONDS"
TIME_BUFFER_DEFAULT: Final = 180_000_000
# Listings of S3 begin this long before the newest file, because files may arrive late.
ENV_TRAIILING_DURATION: Final = "TRAILING_DURATION_MICROSECONDS"  # smdebug has this typo
TRAILING_DURATION_DEFAULT: Final = 300_000_000


def time_buffer_us(environ: Mapping[str, str] = os.environ) -> int:
    """Return the time buffer on both sides of a time range, in microseconds.

    Raises
    ------
    SMDebugValueError
        If the environment variable is not a number >= 0.
    """
    return int(number(ENV_TIME_BUFFER, TIME_BUFFER_DEFAULT, "microseconds", environ))


def trailing_duration_us(environ: Mapping[str, str] = os.environ) -> int:
    """Return how long before the newest file a listing of S3 begins, in microseconds.

    Raises
    ------
    SMDebugValueError
        If the environment variable is not a number >= 0.
    """
    return int(number(ENV_TRAIILING_DURATION, TRAILING_DURATION_DEFAULT, "microseconds", environ))
