"""Follow a trial that is being written with some rule jobs; report how soon its steps were judged.

python bench_live.py RULE_JOBS
"""

import statistics
import sys

from bench_child import Watch
from bench_latency import measure

if __name__ == "__main__":
    watch = Watch()
    seen = measure(int(sys.argv[1]), 0)
    step_ms = statistics.median(seen.steps) * 1e3
    watch.report(0, step_ms=step_ms, event_ms=seen.first_event * 1e3)
