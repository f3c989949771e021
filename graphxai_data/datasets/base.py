"""What all datasets share: they open a build, which is built first if it is missing."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphxai_data.building.build import build
from graphxai_data.errors import InputError
from graphxai_data.files.urls import inside
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.graphs.schema import Schema
from graphxai_data.manifest import Manifest, load_recipe
from graphxai_data.progress import Progress
from graphxai_data.remote import is_built, opened

log = logging.getLogger(__name__)


class Build(NamedTuple):
    """A build to read from; at a URL, `folder` is its copy in the cache."""

    folder: Path
    manifest: Manifest
    url: str | None = None


class OpenedBuild:
    """A dataset that knows its build."""

    folder: Path
    manifest: Manifest
    url: str | None  # where the build was fetched from, if not from a folder
    name: str
    seed: int
    split: str | None  # "train", "valid" or "test" for those graphs only

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> Self:
        """Open the build in a folder, or at a URL, whatever the folder is called.

        Args:
            folder: of the build.
            split: "train", "valid" or "test" for those graphs only.
            transform: applied to a graph whenever it is taken.
            options: other keyword arguments of the class.
        """
        for key in options.keys() & {"root", "name", "seed", "force_reload", "graphs", "progress"}:
            raise TypeError(f"from_folder() takes no '{key}': the folder is the build")
        make: Callable[..., Self] = cls
        with opened(folder, extras=False) as (path, remote):
            manifest = Manifest.load(path)
            place = Build(path, manifest, remote.url if remote else None)
            return make(place, manifest.dataset, split=split, transform=transform, **options)

    @contextmanager
    def _opened(
        self,
        root: str | Path | Build,
        name: str | Path,
        seed: int,
        split: str | None,
        force_reload: bool,
        graphs: int | None,
        progress: Progress | None,
    ) -> Iterator[None]:
        """Open the build under `root`, or take an opened one; errors inside name its URL."""
        if split is not None and split not in SPLIT_NAMES:
            raise InputError(f"split: expected one of {', '.join(SPLIT_NAMES)}, got {split!r}")
        place = _open_build(root, name, seed, force_reload, graphs, progress)
        with place as (self.folder, self.manifest, self.url):
            self.name, self.seed, self.split = self.manifest.dataset, self.manifest.seed, split
            yield

    @cached_property
    def _schema(self) -> Schema:
        return self.manifest.load_recipe().schema

    @property
    def num_classes(self) -> int:
        """Number of classes of the dataset, whichever split is loaded; 1 for numbers."""
        return self._schema.num_classes

    @property
    def label(self) -> str:
        """Whether labels are classes or numbers: "class" or "number"."""
        return self._schema.label

    @property
    def has_rationale(self) -> bool:
        """Whether the nodes and edges that make the label are known."""
        return self._schema.has_rationale

    @property
    def has_null(self) -> bool:
        """Whether a rationale may be null: nothing in the graph makes its label."""
        return self._schema.has_null

    @property
    def has_alternatives(self) -> bool:
        """Whether a graph may have several rationales, each of which explains its label."""
        return self._schema.has_alternatives

    @property
    def has_weights(self) -> bool:
        """Whether nodes have signed weights, `node_weight`."""
        return self._schema.has_weights

    @property
    def task(self) -> str:
        """Whether graphs or nodes have labels: "graph" or "node"."""
        return self._schema.task

    def _positions_by_split(
        self, split: npt.NDArray[Any], indices: Sequence[int]
    ) -> dict[str, Tensor]:
        """Return the positions in `indices` of each split's graphs, given `split` [g] of all."""
        if self.split is not None:
            raise InputError(f"only split '{self.split}' is loaded; load the dataset without split")
        ours = split[np.asarray(indices, np.int64)]
        return {n: torch.from_numpy(np.flatnonzero(ours == i)) for i, n in enumerate(SPLIT_NAMES)}

    def _shown(self, graphs: object) -> str:
        split = f", split={self.split!r}" if self.split else ""
        return f"{type(self).__name__}({self.name!r}, {graphs} graphs, seed={self.seed}{split})"


@contextmanager
def _open_build(
    root: str | Path | Build,
    name: str | Path,
    seed: int,
    force_reload: bool,
    graphs: int | None,
    progress: Progress | None,
) -> Iterator[Build]:
    if isinstance(root, Build):
        yield root
        return
    recipe = load_recipe(name, root, seed)
    if force_reload or not is_built(root, recipe.name, seed):
        build(
            recipe, seed, root, graphs=graphs, progress=progress, replace_existing=force_reload,
            wait=True,
        )  # fmt: skip
    with opened(inside(root, recipe.name, f"seed-{seed}"), extras=False) as (folder, remote):
        manifest = Manifest.load(folder)
        for key, expected in (("recipe_sha256", recipe.sha256), ("seed", seed), ("graphs", graphs)):
            actual = getattr(manifest, key)
            if expected is not None and actual != expected:
                raise InputError(
                    f"{folder}: another build of '{recipe.name}' ({key} {actual}, expected "
                    f"{expected}); pass force_reload=True to build it again, or use another root"
                )
        if graphs is None and manifest.graphs != (usual := recipe.params.graphs):
            log.warning("%s has %d graphs, its recipe %d", folder, manifest.graphs, usual)
        yield Build(folder, manifest, remote.url if remote else None)
