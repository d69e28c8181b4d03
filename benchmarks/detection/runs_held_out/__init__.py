"""Runs of the held-out part: written while rules were mended, and judged once after that.

A module in this folder, or in one below it, is found by itself. It registers its runs with
`healthy` and `faulty` of `training_runs`.
"""
