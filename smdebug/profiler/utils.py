"""Times, units and file names of the profiler."""

from rule_core.profiler.files.time_units import (
    TimeUnits as TimeUnits,
    convert_utc_datetime_to_microseconds as convert_utc_datetime_to_microseconds,
    convert_utc_datetime_to_nanoseconds as convert_utc_datetime_to_nanoseconds,
    convert_utc_timestamp_to_microseconds as convert_utc_timestamp_to_microseconds,
    convert_utc_timestamp_to_nanoseconds as convert_utc_timestamp_to_nanoseconds,
    convert_utc_timestamp_to_seconds as convert_utc_timestamp_to_seconds,
    get_node_id_from_system_profiler_filename as get_node_id_from_system_profiler_filename,
    get_node_id_from_tracefilename as get_node_id_from_tracefilename,
    get_timestamp_from_tracefilename as get_timestamp_from_tracefilename,
    get_utctimestamp_us_since_epoch_from_system_profiler_file as get_utctimestamp_us_since_epoch_from_system_profiler_file,  # noqa: E501 - two long names
    is_valid_tfprof_tracefilename as is_valid_tfprof_tracefilename,
    is_valid_tracefilename as is_valid_tracefilename,
    ns_since_epoch_to_human_readable_time as ns_since_epoch_to_human_readable_time,
    read_tf_profiler_metadata_file as read_tf_profiler_metadata_file,
    str2bool as str2bool,
    us_since_epoch_to_human_readable_time as us_since_epoch_to_human_readable_time,
    validate_system_profiler_file as validate_system_profiler_file,
)
from rule_core.storage.uri import is_s3 as is_s3
