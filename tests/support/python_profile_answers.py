"""Questions about Python profiles, asked of whichever smdebug is installed; answers are JSON."""

import contextlib
import io
import itertools
from typing import Any

from smdebug.profiler.analysis.python_profile_analysis import (
    PyinstrumentAnalysis,
    cProfileAnalysis,
)
from smdebug.profiler.analysis.utils.python_profile_analysis_utils import Metrics, StepPhase
from smdebug.profiler.python_profile_utils import (
    PythonProfileModes,
    python_profile_mode_to_str,
    str_to_python_profile_mode,
)

Json = Any


def plain(answer: Any) -> Json:
    """Return what a fetch answered, without the path of anything."""
    if answer is None:
        return None
    if isinstance(answer, list):
        return [[profile.html_file_path[-200:], profile.json_stats] for profile in answer]
    return [
        [repr(function), sorted(function.callers)]
        for function in sorted(
            answer.function_stats_list, key=lambda function: str(function.function_name)
        )
    ]


def fetches(analysis: Any, steps: list[int], nodes: list[str], began: float) -> dict[str, Json]:
    """Return the answer of each fetch, without a refresh."""
    collected: dict[str, Json] = {}

    def ask(name: str, *args: Any, **kwargs: Any) -> None:
        answer = getattr(analysis, name)(*args, refresh_stats=False, **kwargs)
        collected[repr((name, [str(argument) for argument in args], kwargs))] = plain(answer)

    modes, phases = list(PythonProfileModes), list(StepPhase)
    # How FORWARD_PASS_END is heeded as an end was changed.
    ends = [phase for phase in phases if phase is not StepPhase.FORWARD_PASS_END]
    for first, last in itertools.combinations_with_replacement(steps, 2):
        for mode in modes[:4]:
            ask("fetch_profile_stats_by_step", first, last, mode)
        for start, end in itertools.product(phases, ends):
            ask("fetch_profile_stats_by_step", first, last, modes[0], start, end)
    for node in (*nodes, "none"):
        ask("fetch_profile_stats_by_step", steps[0], node_id=node)
        ask("fetch_pre_step_zero_profile_stats", node)
        ask("fetch_post_hook_close_profile_stats", node)
    for second in range(3, 20):  # longer than any span: what encloses an interval was missed
        ask("fetch_profile_stats_by_time", began + second, began + second + 1.5)
    for start_mode, end_mode in itertools.product(modes, modes):
        ask("fetch_profile_stats_between_modes", start_mode, end_mode)
    return collected


def printed(analysis: Any, step: int) -> dict[str, Json]:
    """Return what is printed of the functions of a step, without the files' names."""
    tables = {}
    for by, n in itertools.product(Metrics, (1, 10)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            analysis.fetch_profile_stats_by_step(step).print_top_n_functions(by, n)
        lines = out.getvalue().splitlines()
        begin = next(number for number, line in enumerate(lines) if "function calls" in line)
        tables[f"{by} {n}"] = lines[begin:]
    return tables


def listed(analysis: Any) -> Json:
    """Return the frame of all files."""
    frame = analysis.list_profile_stats()
    numbers = [name for name in frame.columns if "step" in name or "micros" in name]
    return {
        "columns": list(frame.columns),
        "types": {name: str(frame[name].dtype) for name in numbers},
        "rows": [[str(cell) for cell in row] for row in frame.to_numpy().tolist()],
        "nodes": analysis.list_available_node_ids(),
        "attributes": [repr(stats) for stats in analysis.python_profile_stats],
    }


def answers(folder: str, steps: list[int], began: float) -> dict[str, Json]:
    """Return the answers about the profiles in ``<folder>/{cprofile,pyinstrument}``."""
    functions = cProfileAnalysis(f"{folder}/cprofile")
    sessions = PyinstrumentAnalysis(f"{folder}/pyinstrument")
    nodes = functions.list_available_node_ids()
    pairs = functions.fetch_profile_stats_by_training_phase()
    words = {python_profile_mode_to_str(mode): int(mode) for mode in PythonProfileModes}
    return {
        "words": words,
        "modes": {word: int(str_to_python_profile_mode(word)) for word in words},
        "functions": fetches(functions, steps, nodes, began),
        "sessions": fetches(sessions, steps, nodes, began),
        "printed": printed(functions, steps[0]),
        "listed": [listed(functions), listed(sessions)],
        "pairs": sorted([str(pair), plain(stats)] for pair, stats in pairs.items()),
        # What is before and after the steps was mixed up.
        "loop": plain(functions.fetch_profile_stats_by_job_phase()["training_loop"]),
    }
