"""The commands of rule-runner, one module or package each."""
