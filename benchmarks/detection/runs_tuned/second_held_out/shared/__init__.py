"""Data, networks and consequences that held-out runs share."""
