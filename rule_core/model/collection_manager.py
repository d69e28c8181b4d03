"""CollectionManager: the collections of a hook, in order of creation."""

from collections.abc import Iterable, Iterator

from rule_core.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection


class CollectionManager:
    """The collections that a hook fills, by name.

    Parameters
    ----------
    collections
        The initial collections: collections, or names of empty ones.
    collection_type
        The class of new collections.
    """

    def __init__(
        self,
        collections: Iterable[str | Collection] = (),
        *,
        collection_type: type[Collection] = Collection,
    ) -> None:
        self.collection_type = collection_type
        self._collections: dict[str, Collection] = {}
        self._num_workers = 1
        for collection in collections:
            self.add(collection)

    def __iter__(self) -> Iterator[Collection]:
        return iter(self._collections.values())

    def __contains__(self, name: object) -> bool:
        return name in self._collections

    def add(self, arg: str | Collection) -> Collection:
        """Add an empty collection by name, or a collection, which replaces one of the same name.

        Returns
        -------
        Collection
            The collection.

        Raises
        ------
        SMDebugTypeError
            If `arg` is neither.
        """
        match arg:
            case str():
                return self.get(arg)
            case Collection():
                self._collections[arg.name] = arg
                return arg
            case _:
                msg = f"A collection must be a Collection or a name, got {arg!r}."  # type: ignore[unreachable]  # training scripts are rarely type-checked
                raise SMDebugTypeError(msg)

    def get(self, name: str, create: bool = True) -> Collection:
        """Return the collection with a name; create it if necessary and `create` is true.

        Raises
        ------
        SMDebugError
            If it does not exist and `create` is false.
        """
        if name not in self._collections:
            if not create:
                raise SMDebugError(f"Collection {name!r} was not created.")
            self._collections[name] = self.collection_type(name)
        return self._collections[name]

    def get_collections(self) -> dict[str, Collection]:
        """Return a new dictionary of the collections by name."""
        return dict(self._collections)

    def get_num_workers(self) -> int:
        """Return the number of processes that write the trial."""
        return self._num_workers

    def set_num_workers(self, num_workers: int) -> None:
        """Set the number of processes that write the trial.

        Raises
        ------
        SMDebugValueError
            If it is less than 1.
        """
        if num_workers < 1:
            raise SMDebugValueError(
                f"The number of workers must be at least 1, got {num_workers!r}."
            )
        self._num_workers = num_workers
