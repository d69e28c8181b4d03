"""Configuration of the tensors to save, the hook, and the output for TensorBoard."""

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
            If `other` is anything else, including None.
        """
        if not isinstance(other, CollectionConfig):
            raise TypeError(f"CollectionConfig is comparable with its like only, got {other!r}.")
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
        Destination of the tensors; required by the service.
    container_local_output_path
        Their folder in the training container; the service's default is
        ``/opt/ml/output/tensors/``.
    hook_parameters
        Strings by name, for all collections.
    collection_configs
        The collections to save.
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
            If a collection is not a `CollectionConfig`.
        """
        optional = {
            "LocalPath": self.container_local_output_path,
            "HookParameters": self.hook_parameters,
            "CollectionConfigurations": _collections(self.collection_configs),
        }
        return {"S3OutputPath": self.s3_output_path} | _without_none(optional)


@dataclass(eq=False)
class TensorBoardOutputConfig:
    """The output location of files for TensorBoard.

    Parameters
    ----------
    s3_output_path
        Destination of the files.
    container_local_output_path
        Their folder in the training container; the service's default is
        ``/opt/ml/output/tensorboard``.
    """

    s3_output_path: str
    container_local_output_path: str | None = None

    def _to_request_dict(self) -> Request:
        """Return the `TensorBoardOutputConfig` of a CreateTrainingJob request."""
        optional = {"LocalPath": self.container_local_output_path}
        return {"S3OutputPath": self.s3_output_path} | _without_none(optional)


def _collections(configs: list[CollectionConfig] | None) -> list[Request] | None:
    if configs is None:
        return None
    return [config._to_request_dict() for config in configs]  # noqa: SLF001 - the SDK's name


def _without_none(values: Request) -> Request:
    return {name: value for name, value in values.items() if value is not None}
