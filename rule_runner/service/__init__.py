"""The service: HTTP, event streams, metrics and pages over the index of `watch`."""
