"""What functions of users see of a graph."""

import pytest

from graphxai_data.explain.functions import _ANSWERS
from graphxai_data.recipe import Recipe, shipped_names

# Fields of single datasets that do not tell the rationale. Look at a new field before you add it.
SEEN = {
    "smiles", "smiles_atom", "charge", "hydrogens", "segments", "pos", "image_id", "base_kind",
    "large",
}  # fmt: skip


@pytest.mark.parametrize("name", shipped_names())
def test_every_field_of_a_dataset_is_either_an_answer_or_known_to_be_none(name: str) -> None:
    fields = {extra.name for extra in Recipe.load(name).schema.extras}
    assert not fields & SEEN & set(_ANSWERS)
    assert fields <= SEEN | set(_ANSWERS)
