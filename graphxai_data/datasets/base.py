"""What all datasets know of a build."""

from pathlib import Path

from graphxai_data.errors import InputError
from graphxai_data.generators import generator_module
from graphxai_data.graphs.record import SPLIT_NAMES, Schema
from graphxai_data.manifest import Manifest


class OpenedBuild:
    """A build by its manifest.

    Attributes:
        folder: of the build.
        manifest: its provenance.
        name: of the dataset.
        seed: of the build.
        split: "train", "valid" or "test" for those graphs only, or None.
    """

    folder: Path
    manifest: Manifest
    name: str
    seed: int
    split: str | None
    _schema: Schema

    def _describe(self, folder: Path, manifest: Manifest, split: str | None) -> None:
        self.folder, self.manifest, self.split = folder, manifest, split
        self.name, self.seed = manifest.dataset, manifest.seed
        recipe = manifest.load_recipe()
        self._schema = generator_module(recipe.generator).schema(recipe.params)

    @property
    def num_classes(self) -> int:
        """Number of classes of the dataset, whichever split is chosen."""
        return self._schema.num_classes

    @property
    def has_rationale(self) -> bool:
        """Whether it is known which nodes and edges a class was made by."""
        return self._schema.has_rationale

    @property
    def task(self) -> str:
        """Whether graphs or nodes have classes: "graph" or "node"."""
        return self._schema.task


def checked_split(split: str | None) -> None:
    """An `InputError` unless it is the name of a split, or None."""
    if split is not None and split not in SPLIT_NAMES:
        raise InputError(f"split: expected one of {', '.join(SPLIT_NAMES)}, got {split!r}")


def checked_unsplit(split: str | None) -> None:
    """An `InputError` if only one split is loaded, where all are asked for."""
    if split is not None:
        raise InputError(f"only split '{split}' is loaded; load the dataset without split")
