"""Alerts: messages about the issues of a fleet, grouped and limited."""
