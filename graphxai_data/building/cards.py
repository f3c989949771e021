"""Both cards of a build: `README.md` for people, `croissant.json` for machines."""

from pathlib import Path

from graphxai_data.building.card import data_card
from graphxai_data.building.croissant import croissant
from graphxai_data.files.disk import write_atomically
from graphxai_data.manifest import PICTURE_NAME, Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.rings.verdict import Measurement


def write_cards(
    folder: Path, manifest: Manifest, recipe: Recipe, measured: Measurement | None
) -> None:
    """Write the cards of a build whose other files are all there: the second lists them."""
    picture = PICTURE_NAME if (folder / PICTURE_NAME).is_file() else None
    card = data_card(manifest, recipe, picture, measured)
    write_atomically(folder / "README.md", card.encode())
    write_atomically(folder / "croissant.json", croissant(manifest, recipe, folder).encode())
