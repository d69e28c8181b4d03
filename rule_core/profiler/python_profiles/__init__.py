"""Python profiles of a training job: cProfile and pyinstrument."""
