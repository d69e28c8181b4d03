"""Hook: saves a training job's tensors as a trial, by its configuration, never in the way."""

import atexit
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Final, Literal, Self

from smdebug.core.base_hook import BaseHook
from smdebug.core.collection import Collection
from smdebug.core.decisions import Decisions
from smdebug.core.guard import guarded
from smdebug.core.json_config import DEFAULT_OUT_DIR, load_hook_config
from smdebug.core.modes import ModeKeys
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig, SaveConfigMode
from smdebug.core.tensor_access import check_names
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.storage import open_output

MAX_QUEUE_BYTES: Final = 1 << 28


class Hook(BaseHook):
    """Save tensors of a training loop, step by step, as a trial.

    The framework-free hook: call `save_tensor` and `save_scalar` in the loop and `step` at the end
    of each round. Which of them are saved when is decided by the configuration. Writing happens on
    a thread of its own.

    Parameters
    ----------
    out_dir
        Root of the trial, a folder or ``s3://bucket/prefix``; ``/opt/ml/output/tensors`` by
        default.
    export_tensorboard, tensorboard_dir
        Accepted and not served: a warning says so.
    dry_run
        Count steps and write nothing.
    reduction_config
        What is saved of a tensor; by default its value.
    save_config
        At which steps; by default every 500th of each mode.
    include_regex
        Patterns of tensors to save besides, as collection ``default``.
    include_collections
        Names of collections to save besides those that are saved always.
    save_all
        Whether to save every tensor that the hook sees.
    include_workers
        ``"one"``: the worker of rank 0 writes; ``"all"``: each does.
    max_queue_bytes
        Memory that tensors may hold while they wait to be written.
    when_full
        ``"block"``: the training waits for the disk; ``"drop"``: steps are left out, whole.
    on_error
        ``"disable"``: an error is logged once and turns the hook off; ``"raise"``: it is raised.
    resume
        Whether to go on with the trial that is at `out_dir`; refused otherwise.
    rank, world_size
        Of this process among those of the training job; found out by default.
    collections
        Configured collections; those that there always are stand beside them.

    Raises
    ------
    SMDebugRuntimeError
        If `out_dir` holds a trial and `resume` is not given.
    SMDebugValueError
        If an argument is out of range.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from smdebug.trials import create_trial
    >>> with tempfile.TemporaryDirectory() as root:
    ...     with Hook(root, save_config=SaveConfig(save_interval=2), save_all=True) as hook:
    ...         for step in range(5):
    ...             hook.save_tensor("w", np.full(3, step))
    ...             hook.step()
    ...     create_trial(root).steps()
    [0, 2, 4]
    """

    # Patterns of the collections that there always are, and which of them are always saved.
    DEFAULT_COLLECTIONS: ClassVar[Mapping[str, Sequence[str]]] = {
        "all": (),
        "default": (),
        "weights": ("^(?!gradient).*weight",),
        "biases": ("^(?!gradient).*bias",),
        "gradients": ("^gradient",),
        "losses": ("[Ll]oss",),
    }
    DEFAULT_INCLUDED: ClassVar[Sequence[str]] = ("losses",)
    DEFAULT_SAVE_INTERVAL: ClassVar[int] = 500
    # Collections that a framework's hook fills when it meets their tensors, if they are asked for.
    FILLED_COLLECTIONS: ClassVar[Sequence[str]] = ()
    COLLECTION: ClassVar[type[Collection]] = Collection

    def __init__(
        self,
        out_dir: str | os.PathLike[str] | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | Mapping[str, Any] | None = None,
        save_config: SaveConfig | SaveConfigMode | Mapping[Any, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        *,
        max_queue_bytes: int = MAX_QUEUE_BYTES,
        when_full: Literal["block", "drop"] = "block",
        on_error: Literal["disable", "raise"] = "disable",
        resume: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        collections: Iterable[Collection] = (),
    ) -> None:
        self.out_dir = os.fspath(out_dir) if out_dir is not None else DEFAULT_OUT_DIR
        self.tensorboard_dir = tensorboard_dir
        self.save_all = save_all
        if max_queue_bytes < 1:
            msg = f"Argument 'max_queue_bytes' must be at least 1, got {max_queue_bytes!r}."
            raise SMDebugValueError(msg)
        decisions = Decisions(
            self.DEFAULT_COLLECTIONS,
            self.DEFAULT_INCLUDED,
            save_config=save_config or SaveConfig(save_interval=self.DEFAULT_SAVE_INTERVAL),
            reduction_config=reduction_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
            collections=collections,
            filled=self.FILLED_COLLECTIONS,
            collection_type=self.COLLECTION,
        )
        super().__init__(
            open_output(self.out_dir),
            decisions,
            rank=rank,
            world_size=world_size,
            all_workers=include_workers == "all",
            dry_run=dry_run,
            resume=resume,
            max_queue_bytes=max_queue_bytes,
            drop=one_of(("block", "drop"), "when_full", when_full) == "drop",
            raises=one_of(("disable", "raise"), "on_error", on_error) == "raise",
        )
        if export_tensorboard:
            self._warn_once("tensorboard", "Files for TensorBoard are not written.")
        if not resume and self._writes:
            self._refuse_what_is_there()
        atexit.register(self.close)

    @classmethod
    def create_from_json_file(
        cls, json_file_path: str | os.PathLike[str] | None = None, **options: Any
    ) -> Self:
        """Return a hook with the configuration of a JSON file.

        Parameters
        ----------
        json_file_path
            By default what ``SMDEBUG_CONFIG_FILE_PATH`` names, then
            ``/opt/ml/input/config/debughookconfig.json``.
        **options
            Keyword arguments of the hook that such a file has no words for.

        Raises
        ------
        SMDebugValueError
            If the file is not there or what it says cannot be understood.
        """
        config = load_hook_config(json_file_path, save_interval=cls.DEFAULT_SAVE_INTERVAL)
        return cls(
            config.out_dir,
            config.export_tensorboard,
            config.tensorboard_dir,
            config.dry_run,
            config.reduction_config,
            config.save_config,
            config.include_regex,
            config.include_collections,
            config.save_all,
            config.include_workers,
            collections=config.collections,
            **options,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def include_collections(self) -> set[str]:
        """Names of the collections that are saved."""
        return set(self._decisions.included)

    @property
    def save_config(self) -> SaveConfig:
        """The steps at which a collection without a configuration of its own is saved."""
        return self._decisions.save_config

    @property
    def reduction_config(self) -> ReductionConfig:
        """What is saved of a collection without a configuration of its own."""
        return self._decisions.reduction_config

    def add_collection(self, collection: Collection | str) -> None:
        """Add a collection, in the place of one of the same name, and save it."""
        self._decisions.include(collection)
        if self._recording is not None:
            name = collection if isinstance(collection, str) else collection.name
            self._recording.steps.add_collection(self.get_collection(name))

    @guarded
    def set_mode(self, mode: ModeKeys) -> None:
        """Say which mode the steps that begin from now on belong to."""
        if mode not in list(ModeKeys):
            msg = f"A mode must be one of smdebug.modes, got {mode!r}."
            raise SMDebugTypeError(msg)
        self.mode = mode

    @guarded
    def save_scalar(
        self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None
    ) -> None:
        """Save a number as tensor ``scalar/<name>``.

        It is written with the step in hand if anything is saved at that step, and otherwise with
        the next one at which something is; the last value of a name counts.

        Parameters
        ----------
        name
            Any text.
        value
            A number, or an array or tensor of one element.
        sm_metric
            Whether it belongs to the collection ``sm_metrics``.
        timestamp
            Wall time in seconds since the epoch; now by default.
        """
        full_name = f"scalar/{name}"
        try:
            check_names(full_name)
            array = self.access.copy(value)
            if array.size != 1:
                msg = f"A scalar must have one element, got shape {array.shape}."
                raise SMDebugTypeError(msg)  # noqa: TRY301 - left out like what cannot be copied
        except SMDebugTypeError as err:
            if self._raises:
                raise
            self._leave_out(full_name, err)
            return
        self._scalars[full_name] = (array.reshape(1), timestamp or time.time())
        if sm_metric:
            self._decisions.add_tensor("sm_metrics", full_name)

    @guarded
    def save_tensor(
        self,
        tensor_name: str,
        tensor_value: Any,
        collections_to_write: str | Iterable[str] = "default",
    ) -> None:
        """Save a tensor with the step in hand, if one of its collections is saved at that step.

        Parameters
        ----------
        tensor_name
            Any text.
        tensor_value
            A tensor of the framework, or whatever numpy makes an array of.
        collections_to_write
            Collections that it becomes a member of; made if they are not there.
        """
        self._need_step()
        given = collections_to_write
        names = (given,) if isinstance(given, str) else tuple(given)
        try:
            check_names(tensor_name, *names)
        except SMDebugTypeError as err:
            self._leave_out(tensor_name, err)
            return
        for name in names:
            self._make_member(name, tensor_name, include=True)
        self._save_at_this_step(self._collections_to_save())
        self._record(tensor_name, tensor_value)

    @guarded
    def step(self) -> None:
        """End the step in hand: what was saved since the last call belongs to it."""
        self._need_step()
        self._end_step()

    @guarded
    def flush(self) -> None:
        """End the step in hand, and return when all that was saved so far can be read."""
        self._end_step()
        if self._recording is not None:
            self._recording.flush()

    def state_dict(self) -> dict[str, Any]:
        """Return the counts of steps, for a checkpoint."""
        counts = {mode.name: count for mode, count in self.mode_steps.items()}
        return {"mode": self.mode.name, "global_step": self.global_step, "mode_steps": counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the counts of a checkpoint; steps that the trial has already are not written.

        Raises
        ------
        SMDebugValueError
            If the first step has begun.
        """
        if self._began:
            msg = "The state of a hook must be loaded before its first step."
            raise SMDebugValueError(msg)
        self.mode = ModeKeys[state["mode"]]
        self.global_step = int(state["global_step"])
        self._loaded = True
        self.mode_steps = {ModeKeys[name]: int(n) for name, n in state["mode_steps"].items()}


def one_of(valid: Sequence[str], name: str, value: str) -> str:
    """Return an argument that must be one of a few words."""
    if value not in valid:
        msg = f"Argument {name!r} must be one of {', '.join(valid)}, got {value!r}."
        raise SMDebugValueError(msg)
    return value
