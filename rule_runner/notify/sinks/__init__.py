"""Sinks: the destinations of events, each chosen by its name on the command line."""

from rule_runner.notify.sinks.base import EventSink, Refused, Sent, SinkError

__all__ = ["EventSink", "Refused", "Sent", "SinkError"]
