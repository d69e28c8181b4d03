"""Controller: has trials found, evaluated, recorded and swept, until it is stopped."""

from collections.abc import Sequence
from typing import Final

from rule_core.clock import Clock
from rule_runner.durations import seconds_of
from rule_runner.errors import OutputError
from rule_runner.index.commands import TrialAction
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.states import WatchState
from rule_runner.logs import get_logger
from rule_runner.steps.watcher import Waiter
from rule_runner.watch.config import WatchConfig
from rule_runner.watch.discovery import WatchRoot
from rule_runner.watch.evaluations import Evaluations
from rule_runner.watch.options import WatchContext, WatchOptions
from rule_runner.watch.pace import Pace
from rule_runner.watch.recorder import Recorder
from rule_runner.watch.scheduler import Scheduler
from rule_runner.watch.search import RootSearch
from rule_runner.watch.sweeper import Sweeper

_log: Final = get_logger(__name__)


class Controller:
    """Judges the trials below some roots, until it is stopped.

    Parameters
    ----------
    config
        What to judge, and how.
    roots
        Where to look.
    database
        The index; made again if its file is deleted.
    waiter
        Wakes the controller when trials may have arrived.
    """

    def __init__(
        self,
        config: WatchConfig,
        roots: Sequence[WatchRoot],
        database: WatchDatabase,
        evaluations: Evaluations,
        clock: Clock,
        waiter: Waiter,
        options: WatchOptions,
    ) -> None:
        self.database = database
        self.sources = config.sources
        self._evaluations = evaluations
        self._clock = clock
        self._waiter = waiter
        self._options = options
        context = WatchContext(config, database, clock, options)
        self._recorder = Recorder(context)
        self._scheduler = Scheduler(context, evaluations, self._recorder)
        self._sweeper = Sweeper(context, self._recorder)
        look_s, rare_s = options.intervals.look, seconds_of(config.look_every)
        paces = [Pace(clock, look_s if root.is_local or options.once else rare_s) for root in roots]
        self._search = RootSearch([*zip(roots, paces, strict=True)], config.output, self._add)
        self._search.known = database.paths()

    @property
    def problems(self) -> list[str]:
        """Return the problems of the roots and the executor, as sentences."""
        return [*self._search.problems, *filter(None, [self._evaluations.problem])]

    def stop(self) -> None:
        """Start no more evaluations, and stop those that run; safe in a signal handler."""
        self._scheduler.is_stopping = True

    def expect(self, addresses: Sequence[str]) -> None:
        """Look soon for trials with these new objects; may be called in another thread."""
        self._search.expect(addresses)

    def run(self) -> None:
        """Judge trials until `stop`, or until all are judged if there is no more to wait for.

        Raises
        ------
        OutputError
            If the index cannot be used at the start; with `once`, at any time.
        TemporaryError
            With `once`, if the executor cannot be used.
        """
        self.resume()
        while not self._scheduler.is_stopping:
            self.tick()
            if self._options.once and self._is_done():
                return
            self._waiter.wait(1.0)
        self._scheduler.stop_evaluations()

    def resume(self) -> None:
        """Take over what an earlier controller left."""
        self._scheduler.take_over()
        if self._options.once:
            self._sweeper.queue_grown(self.database.unfinished())

    def rebuild(self) -> None:
        """Add the trials whose results are in local output folders to an empty index."""
        self._recorder.add_saved()
        self._scheduler.sort_discovered()
        self._scheduler.recognize_running()

    def tick(self) -> None:
        """Perform the due work; what hinders it is logged, and it is tried again the next time.

        Raises
        ------
        OutputError
            If the index cannot be used or a disk is full, and nobody waits for it: with `once`.
        TemporaryError
            With `once`, if the executor cannot be used.
        """
        commands = self._options.commands
        try:
            self._do_due_work()
        except OutputError as err:
            if self._options.once:
                raise
            if str(err) != commands.failure:
                _log.error("controller_hindered", reason=str(err))
            commands.failure = str(err)
        else:
            if commands.failure:
                _log.info("controller_recovered")
            commands.failure = ""

    def _do_due_work(self) -> None:
        """Perform the due work.

        Raises
        ------
        OutputError
            If the index cannot be used or a disk is full.
        TemporaryError
            With `once`, if the executor cannot be used.
        """
        if self.database.is_deleted:
            self._begin_again()
        with self.database.transaction():
            pass  # other processes are waited for here, not amid work that is measured
        self._search.look(lambda: self._scheduler.is_stopping)
        self._scheduler.sort_discovered()
        self._carry_out()
        self._scheduler.collect()
        self._sweeper.look_for_growth()
        self._scheduler.start_queued()
        self._recorder.refresh_running()
        self._recorder.refresh_judged()
        for trial in self._sweeper.remove_expired():
            self._search.known.discard(trial.path)
        if problem := self._scheduler.lack_of_space():
            raise OutputError(problem)

    def _begin_again(self) -> None:
        """Make the index again after its file was deleted; evaluations go on."""
        _log.warning("index_deleted", path=str(self.database.path))
        self.database.reopen()
        self._search.known = self.database.paths()
        self.rebuild()

    def _carry_out(self) -> None:
        """Execute the commands of users; what a trial's state no longer allows is left out."""
        for action, number in self._options.commands.taken():
            trial = self.database.trial(number)
            if trial is None or trial.removed:
                continue
            match action:
                case TrialAction.REFRESH:
                    self._recorder.refresh(trial)
                case TrialAction.REEVALUATE:
                    self._scheduler.reevaluate(trial)
                case TrialAction.CANCEL:
                    self._scheduler.cancel(trial)

    def _add(self, trials: Sequence[NewTrial]) -> None:
        self.database.add(trials, self._clock.time())

    def _is_done(self) -> bool:
        """Return whether nothing is left to judge now."""
        states = {state for state, _ in self.database.counts()}
        return self._search.is_done and states <= {WatchState.JUDGED, WatchState.IGNORED}
