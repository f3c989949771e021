import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage.util import regular_grid

from graphxai_data.generators.mnist75sp_proof import slic_superpixels
from graphxai_data.generators.mnist_images import read_digits
from graphxai_data.generators.regions import Slic
from graphxai_data.generators.superpixels import Grid, superpixels
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources

RECIPE = Recipe.load("mnist75sp")
SLIC = RECIPE.params.slic


def test_labels_are_those_of_scikit_image_on_thousands_of_digits() -> None:
    train, test = read_digits(find_sources(RECIPE)["mnist"])
    images = np.concatenate([train.pixels[::10], test.pixels[::2]])
    assert len(images) == 3000
    labels, counts = superpixels(images, SLIC)
    theirs = np.stack([slic_superpixels(image, SLIC) for image in images])
    np.testing.assert_array_equal(labels, theirs)
    np.testing.assert_array_equal(counts, theirs.max(axis=(1, 2)) + 1)


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.uint8, (28, 28)),
    st.builds(
        Slic,
        most_segments=st.integers(2, 150),
        n_segments=st.integers(5, 200),
        compactness=st.sampled_from([0.01, 0.25, 1.0, 10.0]),
        max_num_iter=st.integers(1, 12),
        min_size_factor=st.floats(0, 1),
        max_size_factor=st.floats(1, 5),
    ),
)
def test_labels_are_those_of_scikit_image_for_any_image_and_arguments(
    image: np.ndarray, slic: Slic
) -> None:
    labels, counts = superpixels(image[None], slic)
    np.testing.assert_array_equal(labels[0], slic_superpixels(image, slic))
    assert labels.max() + 1 == counts[0] <= slic.most_segments


def test_an_image_does_not_depend_on_its_neighbours() -> None:
    train, _ = read_digits(find_sources(RECIPE)["mnist"])
    together, _ = superpixels(train.pixels[:50], SLIC)
    alone = [superpixels(train.pixels[i : i + 1], SLIC)[0][0] for i in range(50)]
    np.testing.assert_array_equal(together, alone)


def test_the_grid_is_that_of_scikit_image() -> None:
    for requested in range(1, 785):
        grid = Grid.for_segments(requested, (28, 28))
        _, rows, columns = np.mgrid[:1, :28, :28][
            (slice(None), *regular_grid((1, 28, 28), requested))
        ]
        expected = np.stack([rows.ravel(), columns.ravel()], axis=1)
        np.testing.assert_array_equal(grid.centres((28, 28)), expected)
        assert grid.reach == 2 * (regular_grid((1, 28, 28), rows.size)[1].step or 1)
