"""Data, models and loops that the trainings of the detection suite share."""
