"""Packages that look installed: a module and the metadata of its entry points, in a folder."""

from collections.abc import Mapping
from pathlib import Path

GROUPS = {"explainers": "graphxai_data.explainers", "metrics": "graphxai_data.metrics"}


def write_package(
    folder: Path,
    module: str,
    code: str,
    package: str = "explain-more",
    version: str = "1.2",
    **names: Mapping[str, str],
) -> Path:
    """Write a package whose entry points are objects of one module.

    Args:
        folder: to put on `sys.path`.
        module: name of the module.
        code: of the module.
        package: name of the package.
        version: of the package.
        names: for each group ("explainers", "metrics"), the objects by the plug-in's name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    metadata = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    lines = []
    for group, objects in names.items():
        lines += [f"[{GROUPS[group]}]"]
        lines += [f"{name} = {module}:{target}" for name, target in objects.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
