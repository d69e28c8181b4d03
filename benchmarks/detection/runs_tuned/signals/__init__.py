"""Signals: runs of the rules about targets, policies and speeds."""
