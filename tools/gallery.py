"""Write the gallery of `docs/datasets.md` from the reference builds: pictures and measurements.

Run from a checkout with `python -m tools.gallery --root data`, after `graphxai-data build NAME` for
every shipped recipe. It replaces the text between the two marks in the page, and the pictures in
`docs/gallery/`. `tests/test_packaging.py` compares the page with the builds.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

from graphxai_data import GraphXAIDataset
from graphxai_data.building.cards import markdown_table
from graphxai_data.building.croissant import licence
from graphxai_data.drawing.graphs import NO_DATE, STYLE
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe, shipped_names
from graphxai_data.rings.floors import Floors
from graphxai_data.rings.modes import FEATURE_FREE
from graphxai_data.rings.verdict import RIVALS, Measurement
from graphxai_data.sources import registry

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- gallery: begin -->", "<!-- gallery: end -->"
HEADERS = ("", "dataset", "P1", "P2", "best floor without labels", "with labels", "licence")
NUMBERS = (
    "dataset", "graphs", "classes", "nodes, mean", "directed edges, mean", "original",
    "best without structure, or shortcut", "best without features",
)  # fmt: skip
_SEED = 0
_PICTURE_DPI = 55
# A picture is of one of so many test graphs, a quarter of which are smaller: it has to be readable.
_CANDIDATES = 50


def names() -> list[str]:
    """Return all shipped recipes whose raw files have known hashes."""
    known = registry()
    return [
        name
        for name in shipped_names()
        if all(known[source].sha256 for source in Recipe.load(name).sources.values())
    ]


def gallery_row(name: str, folder: Path) -> list[str]:
    """Return a row of the gallery: picture, sentence, verdicts, floors and licence."""
    manifest = Manifest.load(folder)
    rings, floors = Measurement.load(folder), Floors.load(folder)
    verdicts = ["", ""] if rings is None else [rings.p1, rings.p2]
    cells = ["", ""] if floors is None else _floor_cells(floors)
    text = f"**`{name}`** {Recipe.load(name).summary}"
    terms = licence(manifest)
    terms = terms.rsplit("/", 1)[-1].removesuffix(".html") if "/" in terms else terms
    return [f"![{name}](gallery/{name}.png)", text, *verdicts, *cells, terms]


def _floor_cells(floors: Floors) -> list[str]:
    """Return the best rule without labels, and the best that knows labels of training graphs."""
    knowing = [n for n, row in floors.rows.items() if row.labels and not row.definition]
    best = max(knowing, key=floors.value, default=None)
    return [_floor_cell(floors, floors.best_without_labels), _floor_cell(floors, best)]


def _floor_cell(floors: Floors, name: str | None) -> str:
    return "" if name is None else f"`{name}` {floors.value(name):.3f}"


def number_row(name: str, folder: Path) -> list[str]:
    """Return a row of sizes, and of the scores that RINGS compares."""
    statistics = Manifest.load(folder).statistics
    rings = Measurement.load(folder)
    scores = ["", "", ""]
    if rings is not None and rings.scores:
        mean = {mode: float(np.mean(values)) for mode, values in rings.scores.items()}
        rivals = [[m for m in group if m in mean] for group in (RIVALS["p1"], FEATURE_FREE)]
        best = [max((mean[m] for m in group), default=np.nan) for group in rivals]
        scores = [f"{value:.3f}" for value in (mean["original"], *best)]
    return [
        f"`{name}`",
        f"{Manifest.load(folder).graphs:,}",
        str(len(statistics["classes"])) if statistics["classes"] else "number",
        f"{statistics['nodes_mean']:.2f}",
        f"{statistics['edges_mean']:.2f}",
        *scores,
    ]


def draw(name: str, root: Path) -> None:
    """Draw one of the first test graphs that have a rationale, or of all if none has."""
    dataset = GraphXAIDataset(root, name, _SEED, split="test")
    graphs = [dataset[i] for i in range(min(_CANDIDATES, len(dataset)))]
    shown = [i for i, g in enumerate(graphs) if "node_mask" in g and bool(g.node_mask.any())]
    by_size = sorted(shown or range(len(graphs)), key=lambda i: int(graphs[i].num_nodes))
    i = by_size[len(by_size) // 4]
    target = DOCS / "gallery" / f"{name}.png"
    target.parent.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        dataset.draw(i).savefig(target, dpi=_PICTURE_DPI, metadata=NO_DATE["png"])


def gallery_text(root: Path) -> str:
    """Return the generated part of the page."""
    folders = {name: root / name / f"seed-{_SEED}" for name in names()}
    rows = [gallery_row(name, folder) for name, folder in folders.items()]
    numbers = [number_row(name, folder) for name, folder in folders.items()]
    return "\n\n".join(
        [BEGIN, markdown_table(HEADERS, rows), "### Sizes, and what RINGS compares",
         markdown_table(NUMBERS, numbers), END]
    )  # fmt: skip


def main() -> None:
    """Write pictures and page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path("data"), help="folder of all builds")
    parser.add_argument("--no-pictures", action="store_true", help="keep the pictures")
    arguments = parser.parse_args()
    if not arguments.no_pictures:
        for name in names():
            draw(name, arguments.root)
    page = DOCS / "datasets.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(before + gallery_text(arguments.root) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
