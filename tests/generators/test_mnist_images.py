import gzip
import importlib.util
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphxai_data.building.build import build
from graphxai_data.building.plan import make_plan
from graphxai_data.building.verify import verify
from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.shipped import shipped
from graphxai_data.generators.mnist_images import IDX_FILES, images_of, read_digits
from graphxai_data.graphs.splits import stratified_order
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import rng_for
from graphxai_data.sources import find_sources

RECIPE = Recipe.load("mnist75sp")
TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS = IDX_FILES
Change = Callable[[Path], None]


def idx(array: np.ndarray) -> bytes:
    header = struct.pack(f">I{array.ndim}I", 0x0800 | array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four IDX files with 60 training and 20 test images, digits of the shipped ones."""
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part, digits, count in zip(
        ("train", "t10k"), read_digits(find_sources(RECIPE)["mnist"]), (60, 20), strict=True
    ):
        (folder / f"{part}-images-idx3-ubyte").write_bytes(idx(digits.pixels[:count]))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(digits.label[:count]))
    return folder


def test_the_shipped_images_are_in_proportion_and_have_their_ids() -> None:
    train, test = read_digits(find_sources(RECIPE)["mnist"])
    assert (len(train.label), len(test.label)) == (25_000, 1_000)
    # numbers of images among MNIST's 60,000 training and 10,000 test images
    share = np.array([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]) / 60_000
    for beginning in (1000, 25_000):
        counts = np.bincount(train.label[:beginning], minlength=10)
        assert abs(counts - share * beginning).max() <= 1
    share = np.array([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]) / 10_000
    assert abs(np.bincount(test.label, minlength=10) - share * 1000).max() <= 1
    assert train.image_id.min() >= 0
    assert train.image_id.max() < 60_000 <= test.image_id.min()
    assert test.image_id.max() < 70_000
    assert train.rejected == test.rejected == {}


def test_the_seed_draws_the_images_where_all_of_mnist_is_given(
    folder: Path, tmp_path: Path
) -> None:
    sources = {"mnist": folder}
    plans = []
    for seed in (0, 1, 2, 0):  # the same again, although other orders were read since
        build(RECIPE, seed=seed, root=tmp_path, graphs=50, sources=sources)
        assert verify(tmp_path / "mnist75sp" / f"seed-{seed}", full=True, sources=sources) == []
        plans.append(make_plan(RECIPE, seed, 50, find_sources(RECIPE, sources)))
    for part in ((0, 1), (2,)):
        images = [set(plan.group[np.isin(plan.split, part)].tolist()) for plan in plans]
        assert images[0] == images[3]
        assert images[0] != images[1] != images[2] != images[0]
    label = np.frombuffer((folder / TEST_LABELS).read_bytes()[8:], np.uint8)
    first = stratified_order(label, rng_for(1, "mnist/t10k"))[: (plans[1].split == 2).sum()]
    assert plans[1].group[plans[1].split == 2].tolist() == (60_000 + first).tolist()


def test_a_selection_is_the_same_for_every_seed(folder: Path) -> None:
    selection = find_sources(RECIPE)["mnist"]
    assert read_digits(selection, 7) is read_digits(selection, 0)
    everything = Source("x", folder, "")
    one, other = (read_digits(everything, seed)[0].image_id for seed in (0, 7))
    assert sorted(one.tolist()) == sorted(other.tolist()) == list(range(60))
    assert one.tolist() != other.tolist()


def test_images_are_found_by_their_ids(folder: Path) -> None:
    source = Source("x", folder, "")
    pixels, label = images_of(source, np.array([[3, 60_001], [60_001, 59]]))
    assert pixels.shape == (2, 2, 28, 28)
    stored = np.frombuffer((folder / TRAIN_IMAGES).read_bytes()[16:], np.uint8)
    np.testing.assert_array_equal(pixels[0, 0], stored.reshape(60, 28, 28)[3])
    assert label[1, 0] == label[0, 1] == (folder / TEST_LABELS).read_bytes()[9]
    for missing in (60, 60_020):
        with pytest.raises(InputError, match=f"mnist: image {missing} is not in it, or is rej"):
            images_of(source, np.array([3, missing]))


def test_any_first_part_of_a_stratified_order_has_the_classes_in_proportion() -> None:
    label = np.repeat(np.arange(4), [10, 200, 50, 140])
    order = stratified_order(label, rng_for(3, "test"))
    assert sorted(order.tolist()) == list(range(400))
    for beginning in range(1, 401):
        counts = np.bincount(label[order[:beginning]], minlength=4)
        assert abs(counts - np.array([10, 200, 50, 140]) * beginning / 400).max() <= 1
    assert order.tolist() != stratified_order(label, rng_for(4, "test")).tolist()


@pytest.mark.parametrize("form", ["plain", "gz", "dotted", "zip"])
def test_every_form_of_the_files_gives_the_same_graphs(
    form: str, folder: Path, tmp_path: Path
) -> None:
    plain = build("mnist75sp", root=tmp_path / "a", graphs=50, sources={"mnist": folder})
    assert plain.sources["mnist"].id == "user's file"
    source = folder
    if form == "zip":
        source = tmp_path / "mnist.zip"
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in IDX_FILES:
                archive.write(folder / name, name)
    elif form != "plain":
        for name in IDX_FILES:
            path = folder / name
            if form == "gz":
                (folder / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            else:
                (folder / name.replace("-idx", ".idx")).write_bytes(path.read_bytes())
            path.unlink()
    again = build("mnist75sp", root=tmp_path / "b", graphs=50, sources={"mnist": source})
    assert again.content_sha256 == plain.content_sha256
    if form != "zip":
        assert again.sources["mnist"].sha256 == plain.sources["mnist"].sha256


def _write(name: str, content: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(content)


def _edit(name: str, edit: Callable[[bytes], bytes]) -> Change:
    return lambda folder: (folder / name).write_bytes(edit((folder / name).read_bytes()))


def _swap(folder: Path) -> None:
    images, labels = (folder / name for name in (TRAIN_IMAGES, TRAIN_LABELS))
    images.rename(folder / "x")
    labels.rename(images)
    (folder / "x").rename(labels)


def _checkered() -> bytes:
    return (np.indices((28, 28)).sum(axis=0) % 2 * 255).astype(np.uint8).tobytes()


BAD: dict[str, tuple[Change, str]] = {
    "one missing": (
        lambda folder: (folder / TEST_LABELS).unlink(),
        r"no file t10k-labels-idx1-ubyte \(or t10k-labels-idx1-ubyte.gz\) in it; it has t10k-im",
    ),
    "swapped": (_swap, "magic number 2049, expected 2051, that of a file of labels"),
    "not IDX": (_write(TRAIN_IMAGES, b"hello, world"), "magic number 1751477356, expected 2051"),
    "empty": (_write(TEST_LABELS, b""), "t10k-labels-idx1-ubyte: magic number None, expected 2049"),
    "header only in part": (_edit(TRAIN_IMAGES, lambda b: b[:9]), "ends within its header"),
    "truncated": (_edit(TRAIN_IMAGES, lambda b: b[:-5]), "truncated: 47051 bytes, expected 47056"),
    "longer": (_edit(TRAIN_IMAGES, lambda b: b + b"x"), "longer than its header says"),
    "a header that lies": (
        _edit(TRAIN_IMAGES, lambda b: b[:4] + b"\xff" * 12 + b[16:]),
        "truncated: 47056 bytes, expected 79228162458924105385300197391",
    ),
    "damaged gzip": (
        _edit(TEST_IMAGES, lambda b: gzip.compress(b)[:-50]),
        "t10k-images-idx3-ubyte: a damaged gzip file",
    ),
    "another size": (
        _write(TRAIN_IMAGES, idx(np.ones((60, 32, 32)))),
        "images of 32 x 32 pixels, expected 28 x 28",
    ),
    "fewer labels": (_write(TRAIN_LABELS, idx(np.zeros(59))), "60 images, but 59 labels"),
    "a label beyond nine": (
        _write(TRAIN_LABELS, idx(np.repeat([3, 12], [40, 20]))),
        "label 12 of image 40, expected 0 to 9",
    ),
    "no images at all": (
        lambda folder: [
            (folder / TEST_IMAGES).write_bytes(idx(np.ones((0, 28, 28)))),
            (folder / TEST_LABELS).write_bytes(idx(np.ones(0))),
        ],
        "0 usable test images, 2 needed for 50 graphs; ask for 0 at most",
    ),
    "a folder in the place of a file": (
        lambda folder: [(folder / TEST_LABELS).unlink(), (folder / TEST_LABELS).mkdir()],
        "t10k-labels-idx1-ubyte: not a file",
    ),
    "a link to nowhere": (
        lambda folder: [
            (folder / TEST_LABELS).unlink(),
            (folder / TEST_LABELS).symlink_to("nowhere"),
        ],
        "t10k-labels-idx1-ubyte: not a file",
    ),
    "an image without background": (
        _edit(TRAIN_IMAGES, lambda b: b[:16] + b"".join(_checkered() for _ in range(60))),
        r"image \d+: every superpixel is brighter than 0.0: no rationale; remove the image",
    ),
}


@pytest.mark.parametrize("kind", sorted(BAD))
def test_bad_files_are_one_clear_error_and_nothing_is_written(
    kind: str, folder: Path, tmp_path: Path, cli: Callable
) -> None:
    change, message = BAD[kind]
    change(folder)
    root = tmp_path / "root"
    arguments = ("build", "mnist75sp", "--root", root, "--graphs", 50, "--source")
    result = cli(*arguments, f"mnist={folder}")
    assert result.exit_code == (1 if "rationale" in message else 2)
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(root.rglob("*.h5"))
    assert re.search(message, result.stderr)


def test_blank_images_are_counted_and_the_next_ones_taken(folder: Path, tmp_path: Path) -> None:
    pixels = np.frombuffer((folder / TRAIN_IMAGES).read_bytes()[16:], np.uint8).copy()
    pixels = pixels.reshape(60, 28, 28)
    pixels[4], pixels[7], pixels[9] = 0, 0, 31
    (folder / TRAIN_IMAGES).write_bytes(idx(pixels))
    manifest = build("mnist75sp", root=tmp_path, graphs=50, sources={"mnist": folder})
    expected = {"a blank image": 2, "an image without background": 1}
    assert manifest.sources["mnist"].rejected == expected
    with pytest.raises(InputError, match="57 usable training images, 58 needed for 60 graphs"):
        build("mnist75sp", seed=1, root=tmp_path, graphs=60, sources={"mnist": folder})


def test_more_graphs_than_images_are_refused_with_the_remedy(tmp_path: Path) -> None:
    message = r"needed for 30000 graphs; ask for 26000 at most.*--source mnist=DIR"
    with pytest.raises(InputError, match=message):
        build("mnist75sp", root=tmp_path, graphs=30_000)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mnist.zip"
    path.write_bytes(b"PK no")
    with pytest.raises(InputError, match="neither a folder nor a readable zip archive"):
        build("mnist75sp", root=tmp_path, graphs=50, sources={"mnist": path})
    with pytest.raises(InputError, match="File name too long; give a folder or zip"):
        build("mnist75sp", root=tmp_path, graphs=50, sources={"mnist": "x" * 300})
    with pytest.raises(InputError, match="no such file; give a folder or zip with train-images"):
        build("mnist75sp", root=tmp_path, graphs=50, sources={"mnist": tmp_path / "none"})


def test_the_script_takes_the_first_images_in_order_and_says_which_they_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shipped("data") / "sources" / "make_mnist_26k.py"
    spec = importlib.util.spec_from_file_location("make_mnist", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "IMAGES", {"train": 30, "t10k": 10})
    files = script.members(folder)
    again = _archive_of(files, folder.with_name("again.zip"))
    for whole, part, count in zip(
        read_digits(Source("x", folder, "")), read_digits(Source("x", again, "")), (30, 10),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(part.pixels, whole.pixels[:count])
        np.testing.assert_array_equal(part.label, whole.label[:count])
        np.testing.assert_array_equal(part.image_id, whole.image_id[:count])
    with zipfile.ZipFile(shipped("data") / "sources" / "mnist-26k.zip") as archive:
        assert set(archive.namelist()) == set(files)


def _archive_of(files: dict[str, bytes], path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (np.zeros(60), np.arange(20) + 60_000, "train-ids-idx1-int: not one id for each image"),
        (np.arange(60) - 1, np.arange(20) + 60_000, "an id is not from 0 to 59999"),
        (np.arange(60), np.arange(20), "t10k-ids-idx1-int: an id is not from 60000"),
        (np.arange(60), None, "has ids of the train images, but not of the others"),
    ],
)
def test_ids_that_do_not_fit_are_refused(
    train: np.ndarray, test: np.ndarray | None, message: str, folder: Path
) -> None:
    files = {name: (folder / name).read_bytes() for name in IDX_FILES}
    for part, ids in (("train", train), ("t10k", test)):
        if ids is not None:
            header = struct.pack(">II", 0x0C01, len(ids))
            files[f"{part}-ids-idx1-int"] = header + ids.astype(">i4").tobytes()
    path = _archive_of(files, folder.with_name("ids.zip"))
    with pytest.raises(InputError, match=message):
        read_digits(Source("x", path, message))


def test_ids_in_a_folder_are_ignored(folder: Path, tmp_path: Path) -> None:
    """The digest of a folder does not cover them, so they must not affect its graphs."""
    sources = {"mnist": folder}
    plain = build("mnist75sp", root=tmp_path / "a", graphs=50, sources=sources)
    header = struct.pack(">II", 0x0C01, 60)
    (folder / "train-ids-idx1-int").write_bytes(header + np.arange(60, dtype=">i4").tobytes())
    again = build("mnist75sp", root=tmp_path / "b", graphs=50, sources=sources)
    assert again.content_sha256 == plain.content_sha256
    assert verify(tmp_path / "b" / "mnist75sp" / "seed-0", sources=sources) == []


@pytest.mark.parametrize("at", [40, 200, 5000, -22])
def test_a_damaged_archive_is_refused(at: int, tmp_path: Path) -> None:
    raw = bytearray((shipped("data") / "sources" / "mnist-26k.zip").read_bytes())
    raw[at] ^= 0xFF
    path = tmp_path / "mnist.zip"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="mnist.zip: .*(cannot be read|readable zip|no file)"):
        build("mnist75sp", root=tmp_path, graphs=50, sources={"mnist": path})


def test_an_empty_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    with pytest.raises(InputError, match="in it; it has nothing"):
        build("mnist75sp", root=tmp_path, graphs=50, sources={"mnist": folder})
