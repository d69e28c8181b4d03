"""DeclaredRule: the base class of rules whose constructor takes their declared parameters."""

from collections.abc import Mapping
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import Any, ClassVar

from builtin_rules.statistics.parameters import Declared
from builtin_rules.statistics.training_kind import TrainingKind, training_kind
from smdebug.rules import Rule
from smdebug.rules.extensions import Param, PatternsParam, Severity, set_parameters


class DeclaredRule(Rule):
    """A rule whose constructor takes the trial and the parameters in `PARAMS`, in this order.

    The values become attributes of the same names. A subclass declares its parameters as such
    attributes, which make up `PARAMS`, and creates further state in `_prepare`.

    Attributes
    ----------
    SEVERITY
        See `Rule`. A warning, unless a rule is surer, or only notes something; its page says why.
    UNSUITED
        Why the rule cannot judge a kind of training, by kind.
    given
        The names of the parameters that the caller gave, even if with their defaults.

    Raises
    ------
    SMDebugValueError
        If a value is invalid.
    """

    SEVERITY = Severity.WARNING
    UNSUITED: ClassVar[Mapping[TrainingKind, str]] = MappingProxyType({})
    given: frozenset[str] = frozenset()
    literal: Declared[bool]
    __signature__: ClassVar[Signature | None]
    _declared: ClassVar[Signature]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: each.param for name, each in vars(cls).items() if isinstance(each, Declared)}
        cls.PARAMS = tuple(own.values()) or cls.PARAMS
        for name in own:
            delattr(cls, name)  # each rule gets its value: an attribute of the class is slower
        cls._declared = _signature(cls.PARAMS)
        # A subclass with its own constructor has the signature of that constructor.
        takes_params = cls.__init__ is DeclaredRule.__init__
        cls.__signature__ = cls._declared if takes_params else None

    @classmethod
    def unsuited(cls, trial: Any) -> str:
        """Return why the rule cannot judge the kind of training in a trial; "" if it can."""
        return cls.UNSUITED.get(training_kind(trial), "") if cls.UNSUITED else ""

    def __init__(self, base_trial: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(base_trial)
        _, *params = self._declared.bind(base_trial, *args, **kwargs).arguments.items()
        self.given = set_parameters(self, **dict(params))
        self._prepare()

    def _prepare(self) -> None:
        """Check the parameters and create the state of the rule; does nothing by default."""

    def binds(self, *names: str) -> bool:
        """Return whether to judge by the documented sentence alone, which a rule must declare.

        It is so with `literal`, and if the caller gave one of these parameters: no wait, minimum or
        margin of ours then overrides its value.
        """
        return self.literal or not self.given.isdisjoint(names)

    def record(
        self,
        key: tuple[str | None, str | None],
        step: int,
        quantity: str,
        value: float,
        limit: float,
        *,
        met: bool,
        note: str | None = None,
        severity: Severity | None = None,
    ) -> bool:
        """Record a measurement of a tensor and its worker, and return `met`; see `Rule.measured`.

        Parameters
        ----------
        key
            The tensor and the worker.
        """
        tensor, worker = key
        return self.measured(
            step,
            quantity,
            value,
            limit,
            met=met,
            tensor=tensor,
            worker=worker,
            note=note,
            severity=severity,
        )


def _signature(params: tuple[Param, ...]) -> Signature:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    arguments = [
        Parameter(param.name, kind, default=_default(param), annotation=Any) for param in params
    ]
    base_trial = Parameter("base_trial", kind, annotation=Any)
    return Signature([base_trial, *arguments], return_annotation=None)


def _default(param: Param) -> Any:
    """Return a default as users write it; None for one that includes further patterns."""
    if isinstance(param, PatternsParam) and param.also:
        return None
    return ",".join(param.default) if isinstance(param.default, tuple) else param.default
