"""The numbers of an MNIST-75sp recipe."""

from dataclasses import dataclass
from typing import Annotated

from graphxai_data.files.toml import Between, Checked, Names
from graphxai_data.generators.base import BaseParams

# Features of a superpixel with mean intensity s and centre (x, y), all from 0 to 1.
CHANNELS = {
    "s": lambda s, x, y: s,
    "1-s": lambda s, x, y: 1 - s,
    "x": lambda s, x, y: x,
    "y": lambda s, x, y: y,
    "s*x": lambda s, x, y: s * x,
    "s*y": lambda s, x, y: s * y,
    "s*(1-x)": lambda s, x, y: s * (1 - x),
    "s*(1-y)": lambda s, x, y: s * (1 - y),
}


@dataclass(frozen=True)
class Slic(Checked):
    """Arguments of SLIC, named as in scikit-image; sizes of segments as in scikit-image <= 0.15.

    Since 0.16 `min_size_factor` and `max_size_factor` count in pixels per cluster; before, and in
    the published MNIST-75sp, in pixels per requested segment.

    Attributes:
        most_segments: request fewer segments until at most so many result.
        n_segments: how many to request first.
    """

    most_segments: Annotated[int, Between(2, 256)]
    n_segments: Annotated[int, Between(1, 784)]
    compactness: Annotated[float, Between(0, 1e6, excluded=(0,))]
    max_num_iter: Annotated[int, Between(1, 1000)]
    min_size_factor: Annotated[float, Between(0, 1)]
    max_size_factor: Annotated[float, Between(1, 1000)]

    def sizes(self, requested: int, pixels: int) -> tuple[int, int]:
        """Return the size below which segments are merged, and the size at which they are cut."""
        return (
            int(self.min_size_factor * pixels / requested),
            int(self.max_size_factor * pixels / requested),
        )


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers.

    Attributes:
        slic: arguments of SLIC.
        channels: node features, of `CHANNELS`.
        rationale_above: mean intensity above which a superpixel belongs to the rationale.
        radius: superpixels whose centres are at most so far apart are joined (the image has side
            1); or
        neighbours: each superpixel is joined to so many nearest ones.
    """

    slic: Slic
    channels: Annotated[tuple[str, ...], Names(tuple(CHANNELS))]
    rationale_above: Annotated[float, Between(0, 1, excluded=(1,))]
    radius: Annotated[float, Between(0, 2)] = 0.0
    neighbours: Annotated[int, Between(0)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.radius > 0) == (self.neighbours > 0):
            raise ValueError(
                "one of radius and neighbours must be above 0, the other left out; "
                f"got {self.radius} and {self.neighbours}"
            )
