"""The commands of `rule-runner trial`."""
