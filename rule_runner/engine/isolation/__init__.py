"""Runs rules in separate processes: the fork server and its workers."""
