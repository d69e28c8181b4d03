"""Data, networks and consequences of this folder."""
