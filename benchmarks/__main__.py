"""All benchmarks as one table of ratios: `python -m benchmarks [--root data]`.

Each row compares our code with what people use today: the same work in the same run, on one core
unless the row says otherwise. `--write` writes the table to `benchmarks/results.json` and
`docs/benchmarks.md`. `--check` measures again and fails if a ratio is more than half worse than the
stored one. It compares ratios, never seconds.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results.json", HERE.parent / "docs" / "benchmarks.md"
# Ratios vary between runs on a busy machine; a loss up to this factor is noise.
SLACK = 1.5


@dataclass(frozen=True)
class Row:
    """One ratio of the table.

    Attributes:
        area: the task of the user.
        what: the work that is measured.
        peer: what our code is compared with.
        module: the benchmark module that measures the ratio.
        keys: path to the ratio in the module's JSON output.
        higher: True for "times as fast as a peer" (higher is better), False for "times a floor".
        raw: folder below `--raw` with the module's input files.
    """

    area: str
    what: str
    peer: str
    module: str
    keys: tuple[str, ...]
    higher: bool = True
    raw: str = ""

    @property
    def id(self) -> str:
        """Key of the ratio in `results.json`."""
        return "/".join((self.module, *self.keys))


ROWS = (
    Row("build", "ba2motif: graphs, checked, as a shard", "PyG's ExplainerDataset, graphs only",
        "build", ("ours, to the shard: times PyG's graphs/s",)),
    Row("build", "ba2motif: graphs alone", "PyG's ExplainerDataset",
        "build", ("ours, graphs alone: times PyG's graphs/s",)),
    Row("build", "dihalo: graphs", "floor: RDKit parses the same molecules and adds hydrogens",
        "dihalo", ("generation, in units of RDKit",), higher=False),
    Row("build", "mnist75sp: superpixels", "scikit-image, image by image",
        "mnist75sp", ("superpixels, times scikit-image",)),
    Row("build", "mnist75sp: graphs", "scikit-image's superpixels alone",
        "mnist75sp", ("graphs, times scikit-image",)),
    Row("build", "nci1: graphs from the text files", "PyG's TUDataset",
        "nci1", ("times faster than PyG",), raw="nci1"),
    Row("build", "molhiv: graphs from the published files", "OGB's reader",
        "molhiv", ("times faster than OGB",), raw="molhiv"),
    Row("load", "9,000 graphs", "PyG's processing",
        "load", ("times faster than PyG's processing",)),
    Row("load", "9,000 graphs", "floor: torch.load of PyG's processed file",
        "load", ("time relative to torch.load",), higher=False),
    Row("disk", "bytes of 9,000 graphs", "PyG's processed file",
        "load", ("bytes relative to PyG's file",), higher=False),
    Row("load", "dihalo: graphs of a shuffled stream", "the dataset in memory, first epoch",
        "streaming", ("dihalo", "streaming, times the graphs/s of memory's first epoch")),
    Row("load", "dihalo: graphs by index, from disk", "the dataset in memory, first epoch",
        "streaming", ("dihalo", "random access, times the graphs/s of memory's first epoch")),
    Row("load", "pattern: memory of a shuffled stream", "the dataset in memory",
        "streaming", ("pattern", "streaming, times the bytes in memory"), higher=False),
    Row("batch", "dihalo: an epoch of batches", "PyG's DataLoader",
        "batches", ("dihalo, all fields", "times faster than PyG's loader")),
    Row("batch", "mnist75sp-r23: an epoch of batches", "PyG's DataLoader",
        "batches", ("mnist75sp-r23, all fields", "times faster than PyG's loader")),
    Row("train", "mnist75sp-r23: an epoch of GIN", "PyG's GIN and loader, a later epoch",
        "train", ("mnist75sp-r23", "times faster than PyG's later epoch", "gin, paper")),
    Row("train", "mnist75sp-r23: an epoch of B-cos GIN", "PyG's GIN and loader, a later epoch",
        "train", ("mnist75sp-r23", "times faster than PyG's later epoch", "bcos-gin, paper")),
    Row("train", "a step of GIN, by torch.compile", "the same without",
        "compile", ("gin, compiled", "times faster")),
    Row("train", "a step of B-cos GIN, by torch.compile", "the same without",
        "compile", ("bcos-gin, compiled", "times faster")),
    Row("train", "a step of PyG's GIN, by torch.compile", "the same without",
        "compile", ("PyG's gin, compiled", "times faster")),
    Row("train", "a step of GIN, by torch.compile", "PyG's GIN, by torch.compile",
        "compile", ("gin, compiled", "times faster than PyG's, compiled")),
    Row("explain", "dihalo: a B-cos map, batched", "floor: the model's own forward pass",
        "explain", ("dihalo", "map, times the forward pass"), higher=False),
    Row("explain", "dihalo: a B-cos map, batched", "PyG's GNNExplainer, 200 epochs",
        "explain", ("dihalo", "PyG's GNNExplainer, 200 epochs, times")),
    Row("explain", "dihalo: a B-cos map, batched", "Captum's integrated gradients, 50 steps",
        "explain", ("dihalo", "Captum's integrated gradients, 50 steps, times")),
    Row("RINGS", "complementarity, diffusion distance", "networkx, graph by graph",
        "rings", ("diffusion_distance, times networkx",)),
    Row("RINGS", "complementarity, shortest paths", "networkx, graph by graph",
        "rings", ("shortest_path_distance, times networkx",)),
)  # fmt: skip


def measure(modules: list[str], root: str, raw: Path | None) -> dict[str, Any]:
    """Run each module in its own process and return its output by module name."""
    outputs = {}
    for module in modules:
        command = [sys.executable, "-m", f"benchmarks.{module}"]
        if module in ("batches", "train", "explain", "streaming"):
            command += ["--root", root]
        if module in ("nci1", "molhiv"):
            if raw is None:
                print(f"{module}: skipped, its files are not shipped; give --raw", file=sys.stderr)
                continue
            command += ["--raw", str(raw / module)]
        print(f"{module} …", file=sys.stderr)
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=one_thread)
        if process.returncode:
            raise SystemExit(f"benchmarks.{module} failed")
        outputs[module] = json.loads(process.stdout)
    return outputs


def ratios_of(outputs: dict[str, Any]) -> dict[str, float]:
    """Return the ratio of every measured row."""
    ratios = {}
    for row in ROWS:
        if row.module in outputs:
            value = outputs[row.module]
            for key in row.keys:
                value = value[key]
            ratios[row.id] = float(value)
    return ratios


def worse(now: dict[str, float], written: dict[str, float]) -> list[str]:
    """Return a line for each row that became worse."""
    problems = []
    for row in ROWS:
        if row.id in now and row.id in written:
            loss = written[row.id] / now[row.id] if row.higher else now[row.id] / written[row.id]
            if loss > SLACK:
                problems.append(f"{row.area}, {row.what}: {now[row.id]:g}, was {written[row.id]:g}")
    return problems


def table(ratios: dict[str, float]) -> list[str]:
    """Return the table of ratios as lines of Markdown."""
    lines = ["| area | what | compared with | ratio |", "| --- | --- | --- | --- |"]
    for row in ROWS:
        if row.id in ratios:
            word = "times as fast" if row.higher else "times"
            lines.append(f"| {row.area} | {row.what} | {row.peer} | {ratios[row.id]:g} {word} |")
    return lines


def growth_table(growth: dict[str, dict[str, float]]) -> list[str]:
    """Return the table of growth as lines of Markdown, one row per size."""
    lines = ["| build | ratio | peak memory |", "| --- | --- | --- |"]
    for name, values in growth.items():
        memory = f"{values['peak memory, MiB']:g} MiB"
        ratio = next(f"{key}: {value:g}" for key, value in values.items() if "memory" not in key)
        lines.append(f"| {name} | {ratio} | {memory} |")
    return lines


def page(results: dict[str, Any]) -> str:
    """Return the text of `docs/benchmarks.md`."""
    machine = ", ".join(f"{key} {value}" for key, value in results["machine"].items())
    return "\n".join(
        [
            "# Speed, as ratios",
            "",
            "`python -m benchmarks --write` wrote this page. It compares our code with what people",
            "use today, and with the least that the work can take (a floor). Both do the same work",
            "in the same run, on one core. We give ratios, since seconds depend on the machine.",
            f"This one was: {machine}.",
            "",
            *table(results["ratios"]),
            "",
            "“times as fast”: higher is better. “times”: lower is better.",
            "`python -m benchmarks --check` measures again and fails if a ratio is more than half",
            "worse.",
            "",
            "## Growth",
            "",
            "We build `ba2motif` as a user does, without RINGS. Memory is that of the process and",
            "all its workers together; pages that they share count for each of them.",
            "",
            *growth_table(results["growth"]),
            "",
        ]
    )  # fmt: skip


def machine() -> dict[str, str]:
    """Describe the machine that measures the ratios."""
    return {
        "cores": str(os.cpu_count()),
        "processor": platform.machine(),
        "system": platform.system(),
        "Python": platform.python_version(),
        "torch": version("torch"),
        "torch-geometric": version("torch-geometric"),
        "NumPy": version("numpy"),
        "RDKit": version("rdkit"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default="data", help="folder of builds; missing ones are made")
    parser.add_argument("--raw", type=Path, help="folder with nci1/ and molhiv/, the raw files")
    parser.add_argument("--only", help="modules of this folder, such as build,load")
    parser.add_argument("--most", default="1000000", help="graphs of the largest build")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="store the table")
    action.add_argument("--check", action="store_true", help="compare with the stored table")
    options = parser.parse_args()
    known = list(dict.fromkeys(row.module for row in ROWS))
    modules = options.only.split(",") if options.only else known
    if unknown := [module for module in modules if module not in known]:
        parser.error(f"--only: unknown {unknown[0]}; expected some of {', '.join(known)}")
    if options.write and options.raw is None and not options.only:
        parser.error("--write needs all rows; give --raw, or select some with --only")
    ratios = ratios_of(measure(modules, options.root, options.raw))
    print("\n".join(table(ratios)))
    if options.check:
        problems = worse(ratios, json.loads(RESULTS.read_text())["ratios"])
        print("\n".join(problems) or "no ratio is worse by more than half", file=sys.stderr)
        sys.exit(1 if problems else 0)
    if options.write:
        results = {"machine": machine(), "ratios": ratios}
        if options.only:  # keep the stored ratios of the other modules
            written = json.loads(RESULTS.read_text())
            results |= {"ratios": written["ratios"] | ratios, "growth": written["growth"]}
        else:
            command = [sys.executable, "-m", "benchmarks.growth", "--most", options.most]
            grown = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            results["growth"] = json.loads(grown.stdout)
        RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        PAGE.write_text(page(results), encoding="utf-8")
        print("\n".join(growth_table(results["growth"])))


if __name__ == "__main__":
    main()
