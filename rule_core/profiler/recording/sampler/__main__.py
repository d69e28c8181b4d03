"""Runs the sampler: ``python -m rule_core.profiler.recording.sampler``."""

from rule_core.profiler.recording.sampler.sampling import main

if __name__ == "__main__":
    main()
