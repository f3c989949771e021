"""What the parameters of every generator have in common."""

from dataclasses import dataclass
from typing import Annotated

from graphxai_data.files.toml import Between, Checked
from graphxai_data.seeds import MAX_GRAPHS


@dataclass(frozen=True)
class BaseParams(Checked):
    """Base of a generator's `Params`.

    Attributes:
        graphs: how many graphs the reference build holds.
    """

    graphs: Annotated[int, Between(1, MAX_GRAPHS)]
