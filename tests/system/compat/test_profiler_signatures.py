"""Calls of the profiler's documents take their arguments, by name and by position."""

import inspect
import pkgutil
from collections.abc import Iterator

import pytest

# Classes with what they take, and below each its methods; what may be left out has `=` behind it.
CALLS = """
profiler:MetricsReaderBase path use_in_memory_cache=
  get_events start_time end_time unit= event_type= file_suffix_filter=
  get_events_by_step start_step end_step event_type= file_suffix_filter=
  get_timestamp_of_first_available_file
  get_timestamp_of_latest_available_file
  refresh_event_file_list
profiler.system_metrics_reader:LocalSystemMetricsReader trace_root_folder use_in_memory_cache=
profiler.system_metrics_reader:S3SystemMetricsReader s3_trial_path use_in_memory_cache=
profiler.algorithm_metrics_reader:LocalAlgorithmMetricsReader trace_root_folder use_in_memory_cache=
profiler.algorithm_metrics_reader:S3AlgorithmMetricsReader s3_trial_path use_in_memory_cache=
profiler.analysis.utils.merge_timelines:MergedTimeline path file_suffix_filter= output_directory=
  open file_path
  file_name end_timestamp_in_us
  merge_timeline start end unit= sys_metrics_filter=
  close
profiler.analysis.utils.pandas_data_analysis:PandasFrameAnalysis system_df framework_df
  get_job_statistics
  get_step_statistics by=
  get_utilization_stats resource= by= phase=
  get_device_usage_stats device= utilization_ranges=
  get_training_phase_intervals phase=
profiler.analysis.utils.profiler_data_to_pandas:PandasFrame path use_in_memory_cache= scan_interval=
  get_all_system_metrics selected_system_metrics=
  get_all_framework_metrics selected_framework_metrics=
  get_all_dataloader_metrics selected_framework_metrics=
  convert_datetime_to_timestamp timestamp
  get_framework_metrics_by_timesteps timestep_list= selected_framework_metrics=
  get_framework_metrics_by_begin_and_end_timesteps begin_timestep_list end_timestep_list \
selected_framework_metrics=
  get_profiler_data_by_time start_time_us end_time_us cache_metrics= selected_framework_metrics= \
selected_system_metrics= get_framework_metrics= get_system_metrics=
  get_profiler_data_by_step start_step end_step cache_metrics=
profiler.analysis.utils.pytorch_dataloader_analysis:PT_dataloader_analysis pandas_frame
  analyze_dataloaderIter_initialization
  analyze_dataloaderWorkers
  analyze_dataloader_getnext
  analyze_batchtime
  plot_the_window start_timestamp end_timestamp select_events= select_dimensions=
profiler.analysis.utils.python_profile_analysis_utils:StepPythonProfileStats framework \
profiler_name node_id stats_dir stats_path
  has_start_and_end_mode start_mode end_mode
  in_time_interval start_time_since_epoch_in_micros end_time_since_epoch_in_micros
  in_step_interval start_step end_step start_phase end_phase
  has_pre_step_zero_profile_stats
  has_post_hook_close_profile_stats
  has_node_id node_id
profiler.analysis.utils.python_profile_analysis_utils:cProfileStats ps
  print_top_n_functions by n=
  get_function_stats
profiler.analysis.utils.python_profile_analysis_utils:cProfileFunctionStats key value
profiler.analysis.utils.python_profile_analysis_utils:PyinstrumentStepStats html_file_path \
json_stats
profiler.analysis.python_profile_analysis:PyinstrumentAnalysis local_profile_dir= s3_path=
profiler.analysis.python_profile_analysis:cProfileAnalysis local_profile_dir= s3_path=
  fetch_profile_stats_by_step start_step end_step= mode= start_phase= end_phase= node_id= \
refresh_stats=
  fetch_python_profile_stats_by_step start_step end_step= mode= start_phase= end_phase= node_id= \
refresh_stats=
  fetch_profile_stats_by_time start_time_since_epoch_in_secs end_time_since_epoch_in_secs \
node_id= refresh_stats=
  fetch_python_profile_stats_by_time start_time_since_epoch_in_secs end_time_since_epoch_in_secs \
node_id= refresh_stats=
  fetch_profile_stats_between_modes start_mode end_mode node_id= refresh_stats=
  fetch_pre_step_zero_profile_stats node_id= refresh_stats=
  fetch_post_hook_close_profile_stats node_id= refresh_stats=
  fetch_profile_stats_by_training_phase node_id= refresh_stats=
  fetch_profile_stats_by_job_phase node_id= refresh_stats=
  list_profile_stats refresh_stats=
  list_available_node_ids refresh_stats=
trials.profiler_trial:ProfilerTrial name trial_dir output_dir=
  get_latest_timestamp
  wait_for_data end_time start_time
  job_finished
  get_system_metrics start_time end_time
  get_framework_metrics start_time end_time
"""
MEMBERS = {
    "analysis.utils.merge_timelines:MergeUnit": "TIME=time STEP=step",
    "analysis.utils.pandas_data_analysis:StatsBy": "TRAINING_PHASE=training_phase "
    "FRAMEWORK_METRICS=framework_metric PROCESS=process",
    "analysis.utils.pandas_data_analysis:Resource": "CPU=cpu GPU=gpu IO=i/o NETWORK=network "
    "MEMORY=memory",
    "analysis.utils.python_profile_analysis_utils:Metrics": "TOTAL_TIME=tottime "
    "CUMULATIVE_TIME=cumtime PRIMITIVE_CALLS=pcalls TOTAL_CALLS=ncalls",
    "analysis.utils.python_profile_analysis_utils:StepPhase": "START=start STEP_START=stepstart "
    "FORWARD_PASS_END=forwardpassend STEP_END=stepend END=end",
    "python_profile_utils:PythonProfileModes": "TRAIN=1 EVAL=2 PREDICT=3 GLOBAL=4 "
    "PRE_STEP_ZERO=5 POST_HOOK_CLOSE=6",
}


def each_call() -> Iterator[tuple[str, list[str]]]:
    """Yield the path and the parameters of each call."""
    owner = ""
    for line in CALLS.strip().splitlines():
        path, *parameters = line.split()
        if line.startswith(" "):
            path = f"{owner}.{path}"
        else:
            owner = path
        yield path, parameters


@pytest.mark.parametrize(("path", "documented"), [*each_call()])
def test_documented_calls(path: str, documented: list[str]) -> None:
    found = inspect.signature(pkgutil.resolve_name(f"smdebug.{path}")).parameters.values()
    taken = [
        one.name + "=" * (one.default is not one.empty)
        for one in found
        if one.name != "self" and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    assert documented == taken[: len(documented)]
    assert [one for one in taken[len(documented) :] if not one.endswith("=")] == []


@pytest.mark.parametrize("path", MEMBERS)
def test_documented_members(path: str) -> None:
    found = pkgutil.resolve_name(f"smdebug.profiler.{path}")
    assert [f"{one.name}={one.value}" for one in found] == MEMBERS[path].split()
