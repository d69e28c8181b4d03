"""Notifications: events, the outbox, delivery, sinks and actions."""
