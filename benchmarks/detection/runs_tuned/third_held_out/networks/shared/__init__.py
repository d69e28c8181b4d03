"""Shared: the data, networks and consequences of this folder's runs."""
