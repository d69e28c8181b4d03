"""StopTrainingAction: stops exactly one running training job, or none and says why."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from smdebug.rules.action.aws_calls import AwsCalls, CallError
from smdebug.rules.action.base import Action, ActionState, Fired, Limits, Outcome
from smdebug.rules.action.parsing import STOP

ARN: Final = "TRAINING_JOB_ARN"
PAGES: Final = 50
NAMES_SHOWN: Final = 5
_RUNNING: Final = "InProgress"
_PAGE: Final = 100


@dataclass(frozen=True)
class StopTrainingAction(Action):
    """Stop a training job of SageMaker.

    The job is looked for when the condition is met: the running one of exactly this name, else
    the only running one whose name begins so. With none or several nothing is stopped. A job that
    is stopping, or has ended, needs no more. Names are compared as they are, capitals and all.

    Parameters
    ----------
    rule_name
        Name of the rule, for messages.
    training_job_prefix
        Name, or its beginning. "" is the training job that the platform's container is for.
    exact
        Whether only the job of exactly this name will do.
    """

    rule_name: str
    training_job_prefix: str = ""
    exact: bool = False
    name: ClassVar[str] = STOP
    repeatable: ClassVar[bool] = True

    @property
    def target(self) -> str:
        """Name of the job, or its beginning."""
        return self.training_job_prefix or "its own training job"

    def settled(self, limits: Limits) -> "Action | Outcome":
        """Return the action for the one job that it is to stop; see `Action.settled`."""
        if not self.training_job_prefix:
            parent = os.environ.get(ARN, "").rpartition("/")[2]
            if not parent:
                return _refused("No training job is named, and none is known. Give its name.")
            return replace(self, training_job_prefix=parent, exact=True).settled(limits)
        try:
            return self._sought(AwsCalls("sagemaker", limits))
        except CallError as err:
            return err.outcome

    def plan(self, fired: Fired) -> str:
        """Return which job would be stopped."""
        del fired
        return f"Training job {self.training_job_prefix!r} would be stopped."

    def carry_out(self, fired: Fired, limits: Limits) -> Outcome:
        """Stop the job."""
        del fired
        job = self.training_job_prefix
        try:
            AwsCalls("sagemaker", limits).call("StopTrainingJob", {"TrainingJobName": job})
        except CallError as err:
            if err.code == "ValidationException" and "status" in err.outcome.detail:
                return Outcome(ActionState.DONE, f"Training job {job!r} was not running any more.")
            return err.outcome
        return Outcome(ActionState.DONE, f"Training job {job!r} was told to stop.")

    def _sought(self, calls: AwsCalls) -> "Action | Outcome":
        """Return the action for the one job that it means, or why there is none."""
        wanted = self.training_job_prefix
        found: list[str] = []
        for name, _ in _jobs(calls, PAGES, {"NameContains": wanted, "StatusEquals": _RUNNING}):
            if name == wanted:
                return replace(self, exact=True)
            if name.startswith(wanted):
                found.append(name)
        if not self.exact and len(found) == 1:
            return replace(self, training_job_prefix=found[0], exact=True)
        for name, status in _jobs(calls, 1, {"NameContains": wanted}):
            if name == wanted and status != _RUNNING:
                text = f"Training job {name!r} is {status} already."
                return Outcome(ActionState.DONE, text)
        return _refused(self._why(found))

    def _why(self, found: list[str]) -> str:
        """Return why nothing is stopped."""
        wanted = self.training_job_prefix
        if self.exact or not found:
            begins = "" if self.exact else ", and none whose name begins so"
            return f"No running training job is called {wanted!r}{begins}. Nothing was stopped."
        shown = ", ".join(map(repr, sorted(found)[:NAMES_SHOWN]))
        more = ", ..." if len(found) > NAMES_SHOWN else ""
        return (
            f"{len(found)} running training jobs have names that begin with {wanted!r}: "
            f"{shown}{more}. Nothing was stopped. Give the whole name."
        )


def _refused(detail: str) -> Outcome:
    return Outcome(ActionState.REFUSED, detail)


def _jobs(calls: AwsCalls, pages: int, asked: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Yield name and status of training jobs, the newest first."""
    order = {"SortBy": "CreationTime", "SortOrder": "Descending", "MaxResults": _PAGE}
    token: dict[str, str] = {}
    for _ in range(pages):
        answer = calls.call("ListTrainingJobs", order | asked | token)
        for one in answer["TrainingJobSummaries"]:
            yield one["TrainingJobName"], one["TrainingJobStatus"]
        if not answer.get("NextToken"):
            return
        token = {"NextToken": answer["NextToken"]}
