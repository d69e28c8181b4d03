"""What a training job saves, and where: collections, the hook's configuration, TensorBoard's."""

from dataclasses import dataclass
from typing import Any

Request = dict[str, Any]


@dataclass(eq=False)
class CollectionConfig:
    """A collection of tensors to save.

    Two are equal if name and parameters are; no parameters differ from an empty dictionary of
    them, though both hash alike.

    Parameters
    ----------
    name
        Of a built-in collection, or your own.
    parameters
        Such as ``{"include_regex": "relu", "train.save_interval": "100"}``; neither checked nor
        converted, though the service takes strings only.
    """

    name: str
    parameters: dict[str, Any] | None = None

    def __eq__(self, other: object) -> bool:
        """Compare with another one.

        Raises
        ------
        TypeError
            With anything else, None included.
        """
        if not isinstance(other, CollectionConfig):
            msg = f"CollectionConfig is comparable with its like only, got {other!r}."
            raise TypeError(msg)
        return self.name == other.name and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.name, tuple(sorted((self.parameters or {}).items()))))

    def _to_request_dict(self) -> Request:
        """Return its part of a CreateTrainingJob request."""
        request: Request = {"CollectionName": self.name}
        if self.parameters is not None:
            request["CollectionParameters"] = self.parameters
        return request


@dataclass(eq=False)
class DebuggerHookConfig:
    """How the hook of a training job saves tensors.

    Parameters
    ----------
    s3_output_path
        Where the tensors go; the service needs it.
    container_local_output_path
        Where the training container has them; the service's default is
        ``/opt/ml/output/tensors/``.
    hook_parameters
        Strings by name, for all collections.
    collection_configs
        What to save.
    """

    s3_output_path: str | None = None
    container_local_output_path: str | None = None
    hook_parameters: dict[str, Any] | None = None
    collection_configs: list[CollectionConfig] | None = None

    def _to_request_dict(self) -> Request:
        """Return the `DebugHookConfig` of a CreateTrainingJob request.

        Raises
        ------
        AttributeError
            If a collection is no `CollectionConfig`.
        """
        given = {
            "LocalPath": self.container_local_output_path,
            "HookParameters": self.hook_parameters,
            "CollectionConfigurations": _collections(self.collection_configs),
        }
        return {"S3OutputPath": self.s3_output_path} | _without_none(given)


@dataclass(eq=False)
class TensorBoardOutputConfig:
    """Where TensorBoard's files go.

    Parameters
    ----------
    s3_output_path
        Where to.
    container_local_output_path
        Where the training container has them; the service's default is
        ``/opt/ml/output/tensorboard``.
    """

    s3_output_path: str
    container_local_output_path: str | None = None

    def _to_request_dict(self) -> Request:
        """Return the `TensorBoardOutputConfig` of a CreateTrainingJob request."""
        given = {"LocalPath": self.container_local_output_path}
        return {"S3OutputPath": self.s3_output_path} | _without_none(given)


def _collections(configs: list[CollectionConfig] | None) -> list[Request] | None:
    if configs is None:
        return None
    return [config._to_request_dict() for config in configs]  # noqa: SLF001 - the SDK's name


def _without_none(given: Request) -> Request:
    return {name: value for name, value in given.items() if value is not None}
