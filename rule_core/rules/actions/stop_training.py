"""StopTrainingAction: stops exactly one running training job."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from rule_core.rules.actions.aws_calls import AwsCalls, CallError
from rule_core.rules.actions.base import Action, ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_core.rules.actions.parsing import STOP

ARN: Final = "TRAINING_JOB_ARN"
PAGES: Final = 50
NAMES_SHOWN: Final = 5
_RUNNING: Final = "InProgress"
_PAGE: Final = 100


@dataclass(frozen=True)
class StopTrainingAction(Action):
    """Stops a training job of SageMaker.

    The job is looked up when the condition is met: the running job with exactly this name, or else
    the only running job whose name has this prefix. Nothing is stopped if there is none or more
    than one. A job that is stopping or has ended counts as done. Names are case-sensitive.

    Parameters
    ----------
    rule_name
        The name of the rule, for messages.
    training_job_prefix
        The name or a prefix of it. "" means the training job of the platform's container.
    exact
        Whether to stop only a job with exactly this name.
    """

    rule_name: str
    training_job_prefix: str = ""
    exact: bool = False
    name: ClassVar[str] = STOP
    repeatable: ClassVar[bool] = True
    stops_training: ClassVar[bool] = True

    @property
    def target(self) -> str:
        """The name of the job or its prefix."""
        return self.training_job_prefix or "its own training job"

    def resolve(self, deadline: Deadline) -> "Action | ActionOutcome":
        """Return the action for the one job to stop; see `Action.resolve`."""
        if not self.training_job_prefix:
            parent = os.environ.get(ARN, "").rpartition("/")[2]
            if not parent:
                return _refused("The training job is unknown. Set training_job_prefix to its name.")
            return replace(self, training_job_prefix=parent, exact=True).resolve(deadline)
        try:
            return self._look_up(AwsCalls("sagemaker", deadline))
        except CallError as err:
            return err.outcome

    def plan(self, trigger: ActionTrigger) -> str:
        """Return a sentence that names the job."""
        del trigger
        return f"Training job {self.training_job_prefix!r} would be stopped."

    def carry_out(self, trigger: ActionTrigger, deadline: Deadline) -> ActionOutcome:
        """Stop the job."""
        del trigger
        job = self.training_job_prefix
        try:
            AwsCalls("sagemaker", deadline).call("StopTrainingJob", {"TrainingJobName": job})
        except CallError as err:
            if err.code == "ValidationException" and "status" in err.outcome.detail:
                return ActionOutcome(
                    ActionState.DONE, f"Training job {job!r} was no longer running."
                )
            return err.outcome
        return ActionOutcome(ActionState.DONE, f"Training job {job!r} was told to stop.")

    def _look_up(self, calls: AwsCalls) -> "Action | ActionOutcome":
        """Return the action for the one matching job, or the reason why there is none."""
        prefix = self.training_job_prefix
        matches: list[str] = []
        for name, _ in _jobs(calls, PAGES, {"NameContains": prefix, "StatusEquals": _RUNNING}):
            if name == prefix:
                return replace(self, exact=True)
            if name.startswith(prefix):
                matches.append(name)
        if not self.exact and len(matches) == 1:
            return replace(self, training_job_prefix=matches[0], exact=True)
        for name, status in _jobs(calls, 1, {"NameContains": prefix}):
            if name == prefix and status != _RUNNING:
                text = f"Training job {name!r} is {status} already."
                return ActionOutcome(ActionState.DONE, text)
        return _refused(self._refusal(matches))

    def _refusal(self, matches: list[str]) -> str:
        """Return the reason why nothing is stopped."""
        prefix = self.training_job_prefix
        if self.exact or not matches:
            begins = "" if self.exact else ", and none whose name begins so"
            return f"No running training job is called {prefix!r}{begins}. Nothing was stopped."
        names = ", ".join(map(repr, sorted(matches)[:NAMES_SHOWN]))
        more = ", ..." if len(matches) > NAMES_SHOWN else ""
        return (
            f"{len(matches)} running training jobs have names that begin with {prefix!r}: "
            f"{names}{more}. Nothing was stopped. Give the whole name."
        )


def _refused(detail: str) -> ActionOutcome:
    return ActionOutcome(ActionState.REFUSED, detail)


def _jobs(calls: AwsCalls, pages: int, filters: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield name and status of training jobs, the newest first."""
    order = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": _PAGE}
    for page in calls.pages("ListTrainingJobs", order | filters, pages):
        for summary in page["TrainingJobSummaries"]:
            yield summary["TrainingJobName"], summary["TrainingJobStatus"]
