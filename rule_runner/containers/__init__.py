"""Evaluations in hardened containers of a Docker engine, or of Podman, which has the same API."""
