"""PandasFrame: the profiler data of a training job as data frames."""

from rule_core.analysis.frames.profiler_data_to_pandas import PandasFrame as PandasFrame
