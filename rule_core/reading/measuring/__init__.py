"""Measuring a trial elsewhere: in other processes, or before the evaluation."""
