"""Packages that look installed: modules, recipes and the metadata of entry points, in a folder."""

from collections.abc import Mapping
from pathlib import Path


def write_package(
    folder: Path,
    module: str,
    code: str,
    package: str = "explain-more",
    version: str = "1.2",
    recipes: Mapping[str, str] | None = None,
    **names: Mapping[str, str],
) -> Path:
    """Write a package whose entry points are objects of one module, and return its folder.

    Args:
        folder: to put on `sys.path`.
        module: name of the module, which becomes a package if there are recipes.
        code: of the module.
        package: name of the package.
        version: of the package.
        recipes: their text, by name.
        names: for each group ("generators", "explainers", "metrics"), the objects by the plug-in's
            name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{module}.py"
    if recipes:
        (folder / module / "recipes").mkdir(parents=True, exist_ok=True)
        path = folder / module / "__init__.py"
        for name, text in recipes.items():
            recipe = folder / module / "recipes" / f"{name}.toml"
            recipe.write_text(text, encoding="utf-8")
    path.write_text(code, encoding="utf-8")
    metadata = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    lines = []
    for group, objects in names.items():
        lines += [f"[graphxai_data.{group}]"]
        lines += [f"{name} = {module}:{target}" for name, target in objects.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
