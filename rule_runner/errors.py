"""The errors of the service; whose fault each is decides the exit code.

::

    RuleRunnerError
    |-- ClientError            the user's rule, parameters, source or trial     exit 1
    |   |-- UnknownRuleError
    |   |-- RuleSourceError    a rule file: missing, does not parse, lacks the class, fails to load
    |   |-- ParameterError     misspelt, missing, ill-typed, out of range
    |   |-- TrialError         missing, unreadable, without data
    |   |-- JobError           a job definition: missing, does not parse, holds no rules
    |   `-- RuleFailedError    the rule itself raised
    |-- UsageError             options that do not go together                  exit 2
    `-- OutputError            the output folder: locked, ended, full           exit 73

Anything else that gets out is our own bug: exit 70.
"""

from typing import Final

EXIT_CLIENT: Final = 1
EXIT_USAGE: Final = 2
EXIT_ISSUES: Final = 10
EXIT_INTERNAL: Final = 70
EXIT_OUTPUT: Final = 73
EXIT_TIMEOUT: Final = 124
EXIT_SIGNAL: Final = 128  # and the signal's number


class RuleRunnerError(Exception):
    """Root of the errors that end in one sentence and an exit code."""


class ClientError(RuleRunnerError):
    """The user's rule, its parameters, its source or the trial is at fault."""


class UnknownRuleError(ClientError):
    """No built-in rule has this name."""


class RuleSourceError(ClientError):
    """A rule file is missing, does not parse, lacks the class or fails while it loads."""


class ParameterError(ClientError):
    """A rule parameter is misspelt, missing, ill-typed or out of range."""


class TrialError(ClientError):
    """The trial is missing, unreadable or without data."""


class JobError(ClientError):
    """A job definition cannot be read, or holds nothing that could be evaluated."""


class RuleFailedError(ClientError):
    """The rule's own code raised."""


class UsageError(RuleRunnerError):
    """Options of the command line that do not go together."""


class OutputError(RuleRunnerError):
    """The output folder cannot be used: locked, ended, not writable, full."""
