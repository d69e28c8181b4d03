"""Hook: saves tensors of a training job as a trial without disturbing the training."""

import atexit
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, Self

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys
from rule_core.profiler.recording.config import config_of
from rule_core.saving.base_hook import BaseHook
from rule_core.saving.hook_config import DEFAULT_OUT_DIR, load_hook_config
from rule_core.saving.presets import OF_OPTIMIZER, OPTIMIZER, PRESETS, Preset
from rule_core.saving.save_policy import SavePolicy
from rule_core.saving.tensor_adapter import check_names
from rule_core.sources.names import NameTable
from rule_core.storage.uri import open_output

MAX_QUEUE_BYTES: Final = 1 << 28
# The collections to which scalars belong by their names; losses have patterns of their own.
NAMED_SCALARS: Final = frozenset(OF_OPTIMIZER) - {OPTIMIZER}


class Hook(BaseHook):
    """Save tensors of a training loop, step by step, as a trial.

    This hook is independent of frameworks: call `save_tensor` and `save_scalar` in the loop, and
    `step` at the end of each iteration. The configuration decides what is saved when. A background
    thread writes the files.

    Parameters
    ----------
    out_dir
        Root of the trial, a folder or ``s3://bucket/prefix``; ``/opt/ml/output/tensors`` by
        default, the working folder if empty.
    export_tensorboard, tensorboard_dir
        Whether to write what is saved for TensorBoard too, and the folder, a local one or in S3;
        ``<out_dir>/tensorboard`` by default. A folder alone has the same effect as both.
    dry_run
        Whether to count steps without writing anything.
    reduction_config
        What to save of a tensor; its value by default.
    save_config
        Which steps to save; every 500th of each mode by default.
    include_regex
        Patterns of further tensors to save, as collection ``default``.
    include_collections
        Names of collections to save in addition to those always saved.
    save_all
        Whether to save every tensor that the hook sees.
    include_workers
        ``"one"``: only the worker of rank 0 writes; ``"all"``: every worker writes; ``"none"``:
        nothing is written but a profile.
    max_queue_bytes
        Memory limit, in bytes, for tensors waiting to be written.
    when_full
        ``"block"``: the training waits for the disk; ``"drop"``: whole steps are dropped.
    on_error
        ``"disable"``: an error is logged once and turns the hook off; ``"raise"``: it is raised.
    resume
        Whether to continue an existing trial at `out_dir`, which is an error otherwise.
    rank, world_size
        Rank of this process and number of processes; read from the environment by default.
    collections
        Configured collections, in addition to the default ones.
    preset
        ``"llm"`` saves the measurements of docs/hooks.md that a framework's hook supports,
        ``"auto"`` does so if the model has attention or router modules; ``"none"``: only what the
        other arguments select.
    profiler_config
        What to profile: a `ProfilerConfig` of an SDK, or its request as a mapping. By default the
        file that ``SMPROFILER_CONFIG_PATH`` names, then
        ``/opt/ml/input/config/profilerconfig.json``, if it exists.

    Attributes
    ----------
    save_config, reduction_config
        The defaults of collections.

    Raises
    ------
    SMDebugRuntimeError
        If `out_dir` contains a trial and `resume` is false.
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

    GUARDED: ClassVar[Sequence[str]] = (
        *("set_mode", "save_scalar", "save_tensor", "_write_raw_tensor_simple", "step", "flush"),
    )

    STEPS_JOIN = True
    # Patterns of the default collections, and names of those that are always saved.
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
    # Collections that a framework's hook fills itself as it sees their tensors, if configured.
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
        preset: Preset | None = None,
        profiler_config: Any = None,
    ) -> None:
        self.preset = check_choice(tuple(PRESETS), "preset", preset or "none")
        self.out_dir = os.fspath(out_dir) if out_dir is not None else DEFAULT_OUT_DIR
        if tensorboard_dir or export_tensorboard:
            self.tensorboard_dir = tensorboard_dir or f"{self.out_dir.rstrip('/')}/tensorboard"
        self.save_all = save_all
        if max_queue_bytes < 1:
            raise SMDebugValueError(
                f"Argument 'max_queue_bytes' must be at least 1, got {max_queue_bytes!r}."
            )
        policy = SavePolicy(
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
            open_output(self.out_dir or os.curdir),
            policy,
            rank=rank,
            world_size=world_size,
            workers=include_workers,
            dry_run=dry_run,
            resume=resume,
            max_queue_bytes=max_queue_bytes,
            drop=check_choice(("block", "drop"), "when_full", when_full) == "drop",
            raises=check_choice(("disable", "raise"), "on_error", on_error) == "raise",
            profiling=None if profiler_config is None else config_of(profiler_config),
        )
        self.save_config, self.reduction_config = policy.save_config, policy.reduction_config
        self._name_table = NameTable()
        if not resume and self._writes:
            self._reject_existing_trial()
        atexit.register(self.close)

    @classmethod
    def create_from_json_file(
        cls, json_file_path: str | os.PathLike[str] | None = None, **options: Any
    ) -> Self:
        """Create a hook from a JSON configuration file.

        Parameters
        ----------
        json_file_path
            The file; by default the value of ``SMDEBUG_CONFIG_FILE_PATH``, then
            ``/opt/ml/input/config/debughookconfig.json``.
        **options
            Keyword arguments of the hook that the file cannot express.

        Raises
        ------
        OSError
            If the file cannot be read.
        SMDebugValueError
            If the file contains an invalid value.
        """
        config = load_hook_config(json_file_path, save_interval=cls.DEFAULT_SAVE_INTERVAL)
        return cls(**vars(config), **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def include_collections(self) -> set[str]:
        """Names of the saved collections."""
        return set(self._policy.included)

    def add_collection(self, collection: Collection | str) -> None:
        """Add a collection and save it; it replaces one of the same name."""
        added = self._policy.include(collection)
        if self._recorder is not None:
            self._recorder.add_collection(added)

    def set_mode(self, mode: ModeKeys) -> None:
        """Set the mode of the steps that begin from now on."""
        if mode not in list(ModeKeys):
            raise SMDebugTypeError(f"A mode must be one of smdebug.modes, got {mode!r}.")
        self.mode = mode

    def save_scalar(
        self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None
    ) -> None:
        """Save a number as tensor ``scalar/<name>``.

        It is written with the current step if anything is saved at that step, otherwise with the
        next saved step. If a name is saved twice, the last value counts. Gradient norms, learning
        rates and loss scales, which are known by their names, are in collections of these names.

        Parameters
        ----------
        name
            Any text.
        value
            A number, or an array or tensor of one element.
        sm_metric
            Whether to add it to the collection ``sm_metrics``.
        timestamp
            Wall time in seconds since the epoch; now by default.
        """
        full_name = f"scalar/{name}"
        try:
            check_names(full_name)
            array = self.access.copy(value)
            if array.size != 1:
                raise SMDebugTypeError(f"A scalar must have one element, got shape {array.shape}.")  # noqa: TRY301 - handled like a value that cannot be copied
        except SMDebugTypeError as err:
            if self._raises:
                raise
            self._skip_tensor(full_name, err)
            return
        self._scalars[full_name] = (array.reshape(1), timestamp or time.time())
        collection = self._name_table(str(name)).collection
        if collection in NAMED_SCALARS:
            self._policy.add_tensor(collection, full_name)
        if sm_metric:
            self._policy.add_tensor("sm_metrics", full_name)

    def save_tensor(
        self,
        tensor_name: str,
        tensor_value: Any,
        collections_to_write: str | Iterable[str] = "default",
    ) -> None:
        """Save a tensor with the current step, if one of its collections is saved at that step.

        Parameters
        ----------
        tensor_name
            Any text.
        tensor_value
            A tensor of the framework, or a value that numpy can convert to an array.
        collections_to_write
            Collections to add the tensor to, created if missing.
        """
        self._ensure_step()
        names = collections_to_write
        names = (names,) if isinstance(names, str) else tuple(names)
        try:
            check_names(tensor_name, *names)
        except SMDebugTypeError as err:
            self._skip_tensor(tensor_name, err)
            return
        for name in names:
            self._add_member(name, tensor_name, include=True)
        self._save_at_this_step(self._collections_to_save())
        self._record(tensor_name, tensor_value)

    def _write_raw_tensor_simple(
        self, tensor_name: str, tensor_value: Any, timestamp: float | None = None
    ) -> None:
        """Save a tensor of no collection, if anything is saved at the current step.

        Public scripts call this method of smdebug.
        """
        if self._recorder is not None and self._saving and self._has_valid_name(tensor_name):
            self._recorder.add_array(tensor_name, self.access.copy(tensor_value), timestamp)

    def step(self) -> None:
        """End the current step, which contains everything saved since the last call."""
        self._ensure_step()
        self._end_step()

    def flush(self) -> None:
        """End the current step, and wait until everything saved so far is readable."""
        self._end_step()
        if self._recorder is not None:
            self._recorder.flush()

    def state_dict(self) -> dict[str, Any]:
        """Return the step counts, for a checkpoint."""
        counts = {mode.name: count for mode, count in self.mode_steps.items()}
        return {"mode": self.mode.name, "global_step": self.global_step, "mode_steps": counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the step counts of a checkpoint; steps in the trial are not written again.

        Raises
        ------
        SMDebugValueError
            If the first step has already started.
        """
        if self._has_started:
            raise SMDebugValueError("The state of a hook must be loaded before its first step.")
        self.mode = ModeKeys[state["mode"]]
        self.global_step = int(state["global_step"])
        self._loaded = True
        self.mode_steps = {ModeKeys[name]: int(n) for name, n in state["mode_steps"].items()}


def check_choice(valid: Sequence[str], name: str, value: str) -> str:
    """Return an argument if it is one of the valid values."""
    if value not in valid:
        raise SMDebugValueError(
            f"Argument {name!r} must be one of {', '.join(valid)}, got {value!r}."
        )
    return value
