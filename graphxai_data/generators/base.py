"""What all generators have in common: parameters, and the types of what they exchange."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from graphxai_data.files.raw import Source
from graphxai_data.files.toml import Between, Checked
from graphxai_data.graphs.columns import Ints
from graphxai_data.seeds import MAX_GRAPHS

Values = npt.NDArray[np.uint8]
Sources = dict[str, Source]
# Class, group and split [g] of every graph.
Planned = tuple[Ints, Ints, Values]
# How many items of each source were rejected, by reason.
Rejected = dict[str, dict[str, int]]


@dataclass(frozen=True)
class BaseParams(Checked):
    """Base of a generator's `Params`; `graphs` is the size of the reference build."""

    graphs: Annotated[int, Between(1, MAX_GRAPHS)]
