"""Sinks: where events go from the outbox, each chosen by one word of the command line."""

from rule_runner.sinks.protocol import EventSink, Refused, Sent, SinkError

__all__ = ["EventSink", "Refused", "Sent", "SinkError"]
