"""Runs of the held-out part, written after all defaults were frozen, and judged once.

A module in this folder, or in one below it, is found by itself. It registers its runs with
`healthy` and `faulty` of `training_runs`, and shares no generator with the tuned part.
"""
