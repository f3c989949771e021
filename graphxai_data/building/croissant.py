"""Croissant: machine-readable description of a build (MLCommons Croissant 1.0, JSON-LD)."""

import json
from pathlib import Path
from typing import Any

from graphxai_data.files.hashing import file_sha256
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.sources import registry

# The JSON-LD context that the specification prescribes.
_PREFIXED = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty",
    "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField",
    "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator",
    "source", "subField", "transform",
)  # fmt: skip
_CONTEXT = {name: f"cr:{name}" for name in _PREFIXED} | {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
CITE_AS = (
    "Groß, Solanki, Wolf: B-cos GNNs: Faithful Explanations through Dynamic Linearity; "
    "rebuilt by graphxai-data"
)
_FORMATS = {
    ".h5": "application/x-hdf5",
    ".json": "application/json",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
}


def croissant(manifest: Manifest, recipe: Recipe, folder: Path) -> str:
    """Return JSON-LD that lists every file in the folder of a build with its SHA-256."""
    hashes = {entry.name: entry.file_sha256 for entry in manifest.shards}
    for path in folder.iterdir():
        listed = path.suffix in _FORMATS and not path.name.startswith(".")
        if listed and path.name not in (*hashes, "croissant.json"):
            hashes[path.name] = file_sha256(path)
    document = {
        "@context": dict(sorted(_CONTEXT.items())),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"{manifest.dataset}-seed-{manifest.seed}",
        "description": f"{recipe.summary}. {manifest.graphs} graphs"
        f"{_rationale_words(manifest, recipe)}; content SHA-256 {manifest.content_sha256}.",
        "version": f"{recipe.version}.0.0",
        "license": licence(manifest),
        "citeAs": CITE_AS,
        "distribution": [_file(name, hashes[name], folder) for name in sorted(hashes)],
    }
    return json.dumps(document, indent=2) + "\n"


def _rationale_words(manifest: Manifest, recipe: Recipe) -> str:
    """Return which arrays of the ground truth the shards have."""
    if not manifest.has_rationale:
        return ""
    schema, words = recipe.schema, " with node and edge masks of their ground-truth rationale"
    further = {
        "null in some graphs": manifest.statistics["null_rationales"] is not None,
        "alternatives in alternative_bits": schema.has_alternatives,
        "signed weights in node_weight": schema.has_weights,
    }
    extra = [text for text, present in further.items() if present]
    return f"{words} ({', '.join(extra)})" if extra else words


def licence(manifest: Manifest) -> str:
    """Return the licence of the raw inputs if it is stricter than the package's, which is MIT."""
    known = registry()
    inputs = [known[source.id] for source in manifest.sources.values() if source.id in known]
    for entry in inputs:
        if not entry.spdx:
            return entry.licence
    spdx = min({entry.spdx for entry in inputs} - {"MIT"}, default="MIT")
    return f"https://spdx.org/licenses/{spdx}.html"


def _file(name: str, sha256: str, folder: Path) -> dict[str, Any]:
    path = folder / name
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": _FORMATS[path.suffix],
        "sha256": sha256,
    }
