"""The workers of a Dask cluster, and a corpus in parts that they load.

    part --load--> groups --function--> a result on the worker, or one that is merged with others in a tree

Dask computes the results of a lost worker again, from the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from sklearn.base import BaseEstimator, clone

from sklearn_mcsg._extras import import_extra
from sklearn_mcsg.embedding import GroupEmbedding, fit_to_parts
from sklearn_mcsg.groups import GroupsLike

_FAN_IN = 8  # results that are merged at a time


def clone_with_client(estimator: Any) -> Any:
    """A clone of an estimator with the same client: a connection cannot be copied."""
    light = copy(estimator)
    light.client = None
    twin = BaseEstimator.__sklearn_clone__(light)
    twin.client = estimator.client
    return twin


class Cluster:
    """What is asked of Dask: to send an object to every worker, to run tasks, and to merge their results in a tree.

    Parameters
    ----------
    client : distributed.Client or None
        The cluster; None means the client created last.
    purpose : str
        What needs Dask, for errors.
    call : callable
        Calls a function with arguments; every task is a call of it. Its module is in the room of the estimator: a
        worker's event loop then imports that room before any of its threads does. Python breaks off two threads that
        import modules of one package at the same time.
    """

    def __init__(self, client: Any, purpose: str, call: Callable[..., Any]):
        self._distributed, self._call = import_extra("distributed", purpose), call
        try:
            self.client = self._distributed.get_client() if client is None else client
        except ValueError as error:
            raise ValueError("There is no Dask client: create a distributed.Client, or pass one as client.") from error

    def send(self, value: Any) -> Any:
        """An object that each worker receives once: the result of a task, which makes it again if a worker is lost.

        Only workers unpickle it. The scheduler may be in this process, and a class of ``__main__`` would be made again.
        """
        return self.submit(_unpickled, self._distributed.protocol.pickle.dumps(value))

    def submit(self, function: Callable, *args: Any) -> Any:
        """The result of a task, in the future. Its arguments may be large: parts that are groups, or word vectors."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**50}):
            return self.client.submit(self._call, function, *args, pure=False)

    def gather(self, futures: list[Any]) -> list[Any]:
        """The results of tasks. If some have failed, the error of the first is raised when all have ended."""
        self._distributed.wait(futures)
        failed = [future for future in futures if future.status == "error"]
        return self.client.gather(failed[:1] or futures)

    def merged(self, futures: list[Any], merge: Callable[..., Any]) -> Any:
        """The merged results of tasks; those that are ready together are merged where most of them lie."""
        merge = self.send(merge)
        while len(futures) > 1:
            batches = [futures[i : i + _FAN_IN] for i in range(0, len(futures), _FAN_IN)]
            futures = [self.submit(_merged, merge, *batch) if len(batch) > 1 else batch[0] for batch in batches]
        return futures[0]


class Parts:
    """The parts of a corpus, which workers load whenever a function needs their groups.

    Parameters
    ----------
    parts : iterable
        The parts, in the form that `load` takes.
    load : callable or None
        Function from a part to groups; None means that the parts are groups.
    cluster : Cluster
        The workers.
    """

    def __init__(self, parts: Iterable[Any], load: Callable[[Any], GroupsLike] | None, cluster: Cluster):
        self.cluster, self._parts = cluster, list(parts)
        if not self._parts:
            raise ValueError("There are no parts: X must hold at least one, such as the name of a file.")
        self._names = [f"X[{i}]" if load is None else f"{part!r:.200}" for i, part in enumerate(self._parts)]
        self._load = cluster.send(_itself if load is None else load)

    def over(self, function: Callable, *args: Any) -> list[Any]:
        """The result of a function for the groups of each part and further arguments, in the future."""
        function = self.cluster.send(function)
        named = zip(self._parts, self._names, strict=True)
        return [self.cluster.submit(_apply, function, self._load, part, name, *args) for part, name in named]

    def fitted(self, embedding: GroupEmbedding) -> GroupEmbedding:
        """An embedding that has learnt from all parts."""

        def reduce_parts(function: Callable, merge: Callable) -> Any:
            results = self.over(function)
            self._check_widths(self.cluster.gather([self.cluster.submit(_width, result) for result in results]))
            return self.cluster.merged(results, merge).result()

        return fit_to_parts(clone(embedding), reduce_parts)

    def _check_widths(self, widths: list[int]) -> None:
        """Raise unless all parts have vectors of the same width."""
        for name, width in zip(self._names, widths, strict=True):
            if width != widths[0]:
                raise ValueError(
                    f"The part {name} has vectors of {width} features, but the part {self._names[0]} has {widths[0]}: "
                    f"take the vectors of all parts from one space."
                )


def _itself(value: Any) -> Any:
    return value


def _unpickled(data: bytes) -> Any:
    return import_extra("distributed", "Dask").protocol.pickle.loads(data)


def _merged(merge: Callable[..., Any], *results: Any) -> Any:
    return merge(*results)


def _apply(function: Callable[..., Any], load: Callable[[Any], GroupsLike], part: Any, name: str, *args: Any) -> Any:
    """A function of the groups of a part; errors name the part."""
    try:
        groups = load(part)
    except Exception as error:
        error.add_note(f"This happened in the part {name}.")
        raise
    try:
        return function(groups, *args)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"The part {name} cannot be used: {error}") from error


def _width(learnt: Any) -> int:
    """Number of features of the corpus that a part makes up, or of coordinates in its moments."""
    return learnt.mean.shape[-1]
