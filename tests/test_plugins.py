"""Generators of other packages are found by their entry points; what is missing is said to be."""

import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from graphxai_data import Recipe, build, register, verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.plugins import PluginError
from graphxai_data.generators import GENERATORS, PLUGINS
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import shipped_names
from graphxai_data.sources import registry
from tests.conftest import edit_manifest, importing_environment, run_python
from tests.fake_packages import write_package
from tests.generators import toy
from tests.generators.toy import RECIPE, RECIPE_TEXT, Toy

CODE = Path(toy.__file__).read_text(encoding="utf-8")
Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def no_plugins_left() -> Iterator[None]:
    yield
    PLUGINS.registered.clear()
    sys.modules.pop("toy_package", None)


def install(folder: Path, version: str = "1.2", code: str = CODE, **options: object) -> Path:
    """Write the package toy-sets with the dataset "toy"."""
    names: dict[str, object] = {"generators": {"toy": "Toy"}} | options
    return write_package(
        folder, "toy_package", code, "toy-sets", version, {"toy": RECIPE_TEXT}, **names
    )  # type: ignore[arg-type]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with the package toy-sets 1.2."""
    site = install(tmp_path / "site")
    monkeypatch.syspath_prepend(site)
    return site


@pytest.fixture
def toy_build(site: Path, tmp_path: Path) -> Path:
    build("toy", root=tmp_path / "data", engine="serial", rings=False)
    return tmp_path / "data" / "toy" / "seed-0"


def test_a_dataset_of_a_package_is_built_by_its_name(toy_build: Path) -> None:
    assert verify(toy_build, full=True) == []
    manifest = Manifest.load(toy_build)
    assert manifest.plugin is not None
    assert (manifest.plugin.package, manifest.plugin.version) == ("toy-sets", "1.2")
    assert manifest.versions["toy-sets"] == "1.2"
    assert "generator 'toy' of package toy-sets 1.2" in (toy_build / "README.md").read_text()


def test_a_package_and_register_give_the_same_graphs(
    toy_build: Path, site: Path, tmp_path: Path
) -> None:
    digest = Manifest.load(toy_build).content_sha256
    # In a process without the package.
    code = """
import sys
import graphxai_data
sys.path.append(sys.argv[2])
from toy_package import RECIPE, Toy
graphxai_data.register("toy", Toy)
recipe = graphxai_data.Recipe.from_dict(RECIPE)
print(graphxai_data.build(recipe, root=sys.argv[1], engine="serial", rings=False).content_sha256)
"""
    modules = tmp_path / "modules"
    modules.mkdir()
    shutil.copy(toy.__file__, modules / "toy_package.py")
    environment = importing_environment()
    paths = environment["PYTHONPATH"].split(os.pathsep)
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path != str(site))
    result = run_python(code, tmp_path / "other", modules, env=environment)
    assert result.stdout.strip() == digest, result.stderr


def test_list_names_the_package_of_every_dataset(site: Path, cli: Cli) -> None:
    rows = {row["name"]: row for row in json.loads(cli("list", "--json").stdout)}
    assert rows["toy"]["package"] == "toy-sets 1.2"
    assert rows["dihalo"]["package"].startswith("graphxai-data ")
    assert set(rows) == {"toy", *shipped_names()}
    assert "toy-sets 1.2" in cli("list").stdout


def test_list_without_plugins_has_no_column_for_packages(cli: Cli) -> None:
    assert "package" not in cli("list").stdout.splitlines()[1]


def test_list_imports_no_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.syspath_prepend(install(tmp_path / "site", code="raise SystemExit('imported')"))
    assert "toy-sets 1.2" in cli("list").stdout


def test_a_generator_without_recipe_is_listed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.syspath_prepend(
        write_package(tmp_path / "s", "alone", CODE, "alone", "3", None, generators={"toy": "Toy"})
    )
    assert "generator 'toy' of package alone 3: no recipe" in cli("list").stdout


BAD = RECIPE_TEXT.replace('"toy"', '"bad"', 1)


@pytest.mark.parametrize(
    "text",
    [
        "name = ",
        "name = 'bad'\nparams = 3",
        BAD.replace("train = 0.8", "train = 'most'"),
        BAD.replace("graphs = 40", "graphs = inf"),
        BAD.replace("graphs = 40", "graphs = 'many'"),
    ],
)
def test_a_bad_recipe_of_a_package_does_not_break_the_list(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    site = install(tmp_path / "site")
    (site / "toy_package" / "recipes" / "bad.toml").write_text(text)
    monkeypatch.syspath_prepend(site)
    result = cli("list")
    assert result.exit_code == 0
    assert "Warning: package toy-sets 1.2: " in result.stderr
    assert "bad.toml: " in result.stderr
    assert "toy-sets 1.2" in result.stdout


@pytest.mark.parametrize("command", [["verify"], ["info"], ["rings"], ["report"]])
def test_a_missing_package_is_said_to_be_missing(
    toy_build: Path, site: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, command: list[str]
) -> None:
    before = {path: path.read_bytes() for path in toy_build.iterdir()}
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(site)])
    result = cli(*command, toy_build)
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: {toy_build}: built by generator 'toy' of package toy-sets 1.2, which is not "
        "installed: pip install toy-sets\n"
    )
    assert {path: path.read_bytes() for path in toy_build.iterdir()} == before


def test_python_callers_get_a_plugin_error(
    toy_build: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(site)])
    with pytest.raises(PluginError, match="which is not installed: pip install toy-sets"):
        verify(toy_build)
    with pytest.raises(InputError, match="unknown generator 'toy'"):
        Recipe.from_dict(RECIPE)
    with pytest.raises(InputError, match="unknown dataset 'toy'"):
        Recipe.load("toy")


def test_every_way_to_a_build_names_the_missing_package(
    toy_build: Path, site: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    root = toy_build.parent.parent
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(site)])
    missing = "built by generator 'toy' of package toy-sets 1.2, which is not installed"
    for command in ("build", "train", "evaluate"):
        result = cli(command, "toy", "--root", root)
        assert result.exit_code == 2
        assert missing in result.stderr
    with pytest.raises(PluginError, match=missing):
        GraphXAIDataset(root, "toy")


def test_a_package_that_no_longer_offers_it_is_not_called_missing(
    toy_build: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(site)])
    monkeypatch.syspath_prepend(install(tmp_path / "new", "1.3", generators={"other": "Toy"}))
    message = "toy-sets 1.3 is installed, but does not offer it: pip install toy-sets==1.2"
    with pytest.raises(PluginError, match=message):
        verify(toy_build)


def test_a_kept_build_of_another_version_is_mentioned(
    toy_build: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    other_version(site, tmp_path, monkeypatch)
    build("toy", root=toy_build.parent.parent, engine="serial", rings=False)
    assert "is kept: built by toy-sets 1.2, here is 1.3" in caplog.text


def test_a_package_brings_files_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = (
        CODE
        + """
class FromLines(Toy):
    sources = {"lines": ()}

    def read(self, sources, group, seed):
        lines = sources["lines"].path.read_text().split()
        return [lines[i % 3] for i in group], {"lines": {}}
"""
    )
    recipe = RECIPE_TEXT + 'sources = { lines = "abc" }\n'
    folder = write_package(
        tmp_path / "site", "toy_package", code, "toy-sets", "1.2", {"toy": recipe},
        generators={"toy": "FromLines"},
    ) / "toy_package"  # fmt: skip
    monkeypatch.syspath_prepend(tmp_path / "site")
    (folder / "sources").mkdir()
    (folder / "sources" / "abc.txt").write_text("a b c")
    digest = hashlib.sha256(b"a b c").hexdigest()
    entry = f'file = "abc.txt"\nbytes = 5\nsha256 = "{digest}"\norigin = "me"\nlicence = "MIT"\n'
    (folder / "sources.toml").write_text(f"[abc]\n{entry}[zinc-clean-leads]\n{entry}")
    manifest = build("toy", root=tmp_path / "data", engine="serial", rings=False)
    assert (manifest.sources["lines"].id, manifest.sources["lines"].sha256) == ("abc", digest)
    assert verify(tmp_path / "data" / "toy" / "seed-0", full=True) == []
    # An id of ours cannot be taken.
    assert registry()["zinc-clean-leads"].package == "graphxai-data"
    (folder / "sources" / "abc.txt").write_text("a b d")
    with pytest.raises(DamagedError, match="abc.txt: damaged .*install toy-sets 1.2 again"):
        build("toy", root=tmp_path / "again", engine="serial", rings=False)
    (folder / "sources.toml").write_text("[abc]\n")
    assert "abc" not in registry()
    assert "sources of package toy-sets 1.2 are ignored" in caplog.text


def test_a_source_id_of_two_packages_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = CODE.replace(
        "class Toy(Generator):", "class Toy(Generator):\n    sources = {'lines': ()}"
    )
    code = code.replace("    def prover", "    def read(self, *_): ...\n\n    def prover")
    for name in ("one", "two"):
        text = RECIPE_TEXT.replace('"toy"', f'"{name}"') + 'sources = { lines = "abc" }\n'
        site = write_package(
            tmp_path / name, f"pack_{name}", code, f"pack-{name}", "1", {name: text},
            generators={name: "Toy"},
        )  # fmt: skip
        digest = hashlib.sha256(name.encode()).hexdigest()
        folder = site / f"pack_{name}"
        (folder / "sources.toml").write_text(
            f'[abc]\nfile = "a"\nbytes = 3\nsha256 = "{digest}"\norigin = ""\nlicence = "MIT"\n'
        )
        monkeypatch.syspath_prepend(site)
    with pytest.raises(InputError, match="'abc' is offered by packages pack-one 1 and pack-two 1"):
        build("two", root=tmp_path, engine="serial")


def test_a_package_that_is_installed_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    with pytest.raises(InputError, match="unknown generator 'toy'"):
        Recipe.from_dict(RECIPE)
    install(site)
    importlib.invalidate_caches()
    assert Recipe.from_dict(RECIPE).plugin is not None


@pytest.mark.parametrize("name", ["x" * 300, "../toy", "a b", "é"])
def test_a_name_that_is_no_folder_is_an_unknown_dataset(
    name: str, tmp_path: Path, cli: Cli
) -> None:
    result = cli("build", name, "--root", tmp_path)
    assert result.exit_code == 2
    assert "unknown dataset" in result.stderr or "no such recipe file" in result.stderr


def test_what_a_plugin_prints_is_not_among_the_results(tmp_path: Path, site: Path) -> None:
    module = site / "toy_package" / "__init__.py"
    text = CODE.replace("edges = [", "print('hello')\n        edges = [", 1)
    module.write_text(text + "\nprint('imported')\n")
    command = [sys.executable, "-m", "graphxai_data.cli", "build", "toy", "--json", "--no-rings"]
    result = subprocess.run(
        [*command, "--root", tmp_path / "data", "--jobs", "2", "--shard-size", "20"],
        capture_output=True, text=True, timeout=120, env=importing_environment(),
    )  # fmt: skip
    assert json.loads(result.stdout)["graphs"] == 40
    assert "hello" in result.stderr


def test_a_recipe_that_is_named_otherwise_or_like_ours_is_a_warning(site: Path, cli: Cli) -> None:
    recipes = site / "toy_package" / "recipes"
    (recipes / "other.toml").write_text(RECIPE_TEXT)
    (recipes / "dihalo.toml").write_text(RECIPE_TEXT.replace('"toy"', '"dihalo"', 1))
    result = cli("list")
    assert "other.toml: not named 'other', as its file; make them agree" in result.stderr
    assert "dihalo.toml: a shipped dataset has this name; it is ignored" in result.stderr
    assert Recipe.load("dihalo").generator == "dihalo"


def test_a_generator_without_recipe_says_so_when_it_is_built(site: Path, cli: Cli) -> None:
    (site / "toy_package" / "recipes" / "toy.toml").unlink()
    result = cli("build", "toy")
    assert "generator 'toy' of package toy-sets 1.2 is here, but no recipe of this" in result.stderr


def test_a_build_of_a_registered_class_says_what_to_do(
    tmp_path: Path,
) -> None:
    register("toy", Toy)
    build(Recipe.from_dict(RECIPE), root=tmp_path, engine="serial", rings=False)
    PLUGINS.registered.clear()
    message = (
        r"\(registered by a script\); in Python, call graphxai_data.register\('toy', …\) first"
    )
    with pytest.raises(PluginError, match=message):
        verify(tmp_path / "toy" / "seed-0")


def other_version(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str = "", new: str = ""
) -> None:
    """Replace the package by version 1.3, with some of its code changed."""
    assert old in CODE
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(site)])
    monkeypatch.syspath_prepend(install(tmp_path / "new", "1.3", CODE.replace(old, new)))
    sys.modules.pop("toy_package")


def test_another_version_that_makes_the_same_graphs_verifies(
    toy_build: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_version(site, tmp_path, monkeypatch)
    assert verify(toy_build, full=True) == []


def test_another_version_that_makes_other_graphs_is_named(
    toy_build: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_version(site, tmp_path, monkeypatch, "rng.integers(3, self", "rng.integers(2, self")
    (problem,) = verify(toy_build, full=True)
    assert problem.startswith(
        f"{toy_build}: built by toy-sets 1.2, here is 1.3: pip install toy-sets==1.2 to check it; "
    )
    assert "is not what recipe and seed give" in problem


def test_another_version_with_other_params_is_named_and_nothing_is_called_damaged(
    toy_build: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    other_version(site, tmp_path, monkeypatch, "longest", "largest")
    result = cli("verify", toy_build)
    assert result.exit_code == 2
    assert "unknown key 'params.longest'; did you mean 'largest'?" in result.stderr
    assert "built by toy-sets 1.2, here is 1.3: pip install toy-sets==1.2" in result.stderr
    assert "delete" not in result.stderr


def test_changed_code_of_the_same_version_is_not_called_damage(
    toy_build: Path, site: Path, cli: Cli
) -> None:
    module = site / "toy_package" / "__init__.py"
    module.write_text(CODE.replace("longest", "largest"))
    sys.modules.pop("toy_package")
    result = cli("info", toy_build)
    assert result.exit_code == 2
    assert "of package toy-sets 1.2 has changed since it made the build" in result.stderr
    assert "delete" not in result.stderr


def test_an_unfinished_build_of_another_version_is_not_continued(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from graphxai_data.building.staging import make_order

    before = make_order("toy", 0, None, 10, None).to_json()
    other_version(site, tmp_path, monkeypatch)
    assert make_order("toy", 0, None, 10, None).to_json() != before


def test_a_package_that_cannot_be_imported_is_named(toy_build: Path, site: Path, cli: Cli) -> None:
    (site / "toy_package" / "__init__.py").write_text("import no_such_module\n")
    sys.modules.pop("toy_package")
    for command in (["build", "toy"], ["verify", toy_build]):
        result = cli(*command)
        assert result.exit_code == 2
        assert (
            "generator 'toy' of package toy-sets 1.2 cannot be imported: ModuleNotFoundError: No "
            "module named 'no_such_module' (toy_package/__init__.py, line 1); repair or uninstall "
            "toy-sets"
        ) in result.stderr


def test_a_package_that_exits_on_import_is_named(toy_build: Path, site: Path, cli: Cli) -> None:
    (site / "toy_package" / "__init__.py").write_text("raise SystemExit(3)\n")
    sys.modules.pop("toy_package")
    result = cli("verify", toy_build)
    assert result.exit_code == 2
    assert "of package toy-sets 1.2 cannot be imported: SystemExit: 3 (toy_package" in result.stderr


def test_an_entry_point_to_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path / "site", generators={"toy": "Tory"}))
    result = cli("build", "toy", "--root", tmp_path)
    assert result.exit_code == 2
    assert "of package toy-sets 1.2 cannot be imported: AttributeError:" in result.stderr
    assert "has no attribute 'Tory'; repair or uninstall toy-sets" in result.stderr


def test_an_entry_point_to_an_incomplete_class_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    code = CODE.replace("def make(", "def made(")
    monkeypatch.syspath_prepend(install(tmp_path / "site", code=code))
    result = cli("build", "toy", "--root", tmp_path)
    assert result.exit_code == 2
    assert "generator 'toy' of package toy-sets 1.2: Toy has neither make nor gen" in result.stderr


def test_an_error_inside_a_plugin_is_one_line_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    code = CODE.replace("edges = [", "raise KeyError('carbon')\n        edges = [", 1)
    monkeypatch.syspath_prepend(install(tmp_path / "site", code=code))
    result = cli("build", "toy", "--root", tmp_path / "data", "--engine", "serial")
    assert result.exit_code == 1
    line = CODE.split("edges = [")[0].count("\n") + 1
    assert result.stderr == (
        "Error: generator 'toy' of package toy-sets 1.2: graph 0: KeyError: 'carbon' "
        f"(toy_package/__init__.py, line {line})\n"
    )


def test_two_packages_of_one_name_are_both_named(
    toy_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.syspath_prepend(
        write_package(
            tmp_path / "b", "others", CODE, "other-toys", "0.1", None, generators={"toy": "Toy"}
        )
    )
    both = "offered by package other-toys 0.1 and by package toy-sets 1.2; keep one of them"
    for command in (["build", "toy", "--root", tmp_path / "c"], ["verify", toy_build]):
        result = cli(*command)
        assert result.exit_code == 2
        assert both in result.stderr
    assert both in cli("list").stderr
    assert "toy-sets 1.2" in cli("list").stdout


def test_a_plugin_cannot_take_a_shipped_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    for name in GENERATORS:
        with pytest.raises(InputError, match=f"'{name}' comes with graphxai-data; choose another"):
            register(name, Toy)
    recipes = {"ba2motif": RECIPE_TEXT}
    site = write_package(
        tmp_path / "s", "thief", CODE, "thief", "1", recipes, generators={"ba2motif": "Toy"}
    )
    monkeypatch.syspath_prepend(site)
    assert Recipe.load("ba2motif").generator_object.__class__.__name__ == "BA2MotifGenerator"
    warning = cli("list").stderr
    assert "Warning: package thief 1 offers generator 'ba2motif', which comes with" in warning


def test_register_refuses_what_is_not_a_name_or_not_free(site: Path) -> None:
    for name in ("Toy", "to y", "", "../toy", None, "a" * 65):
        with pytest.raises(InputError, match="expected a name of 1 to 64"):
            register(name, Toy)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'toy' is that of package toy-sets 1.2"):
        register("toy", Toy)
    register("mine", Toy)
    register("mine", Toy)  # as a cell of a notebook that runs again

    class Other(Toy):
        pass

    with pytest.raises(InputError, match=r"registered already, as tests\.generators\.toy\.Toy"):
        register("mine", Other)


def test_a_manifest_cannot_claim_a_plugin_that_it_does_not_have(
    toy_build: Path, small_build: Path, cli: Cli
) -> None:
    edit_manifest(toy_build, plugin=None)
    assert "does not say which plug-in made it" in cli("verify", toy_build).stdout
    edit_manifest(small_build, plugin={"package": "x", "version": "1"})
    assert "the one of this name here is another (shipped)" in cli("verify", small_build).stderr
    edit_manifest(small_build, plugin={"package": "x; rm -rf /", "version": "1"})
    assert "is no package and its version" in cli("verify", small_build).stdout


SCRIPT = """
import sys
import graphxai_data

{code}

graphxai_data.register("toy", Toy)
if __name__ == "__main__":  # Dask imports the script again in its workers
    recipe = graphxai_data.Recipe.from_dict(RECIPE)
    root, engine = sys.argv[1:]
    options = {{"root": root, "engine": engine, "jobs": 2, "shard_size": 20, "rings": False}}
    print(graphxai_data.build(recipe, **options).content_sha256)
    if engine == "processes":
        from graphxai_data.comparison import compare

        dataset = graphxai_data.GraphXAIDataset.from_folder(f"{{root}}/toy/seed-0")
        options = {{"timing": False, "engine": engine, "jobs": 2, "changes": {{"epochs": 1}}}}
        comparison = compare(dataset, ["gin"], ["saliency"], [0, 1], f"{{root}}/runs", **options)
        assert [row["seed"] for row in comparison.rows] == [0, 1]
"""


def test_workers_know_what_a_script_registers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(code=CODE.split('"""', 2)[2]), encoding="utf-8")
    outputs = {}
    for engine in ("serial", "processes", "dask"):
        command = [sys.executable, script, tmp_path / engine, engine]
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=importing_environment()
        )
        assert result.returncode == 0, result.stderr
        outputs[engine] = result.stdout
    assert outputs["serial"] == outputs["processes"] == outputs["dask"]


def test_workers_of_a_class_that_they_cannot_import_say_so(tmp_path: Path) -> None:
    module = tmp_path / "hidden.py"
    module.write_text(CODE, encoding="utf-8")
    code = """
import importlib.util
import sys
import graphxai_data
spec = importlib.util.spec_from_file_location("hidden", sys.argv[1])
hidden = sys.modules["hidden"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hidden)
graphxai_data.register("toy", hidden.Toy)
recipe = graphxai_data.Recipe.from_dict(hidden.RECIPE)
try:
    graphxai_data.build(recipe, root=sys.argv[2], jobs=2, shard_size=10, rings=False)
except graphxai_data.errors.InputError as error:
    print(error)
"""
    result = run_python("import graphxai_data.errors\n" + code, module, tmp_path / "data")
    assert "cannot import the module that defines a registered generator" in result.stdout


def test_dask_workers_without_the_package_are_refused(toy_build: Path) -> None:
    from graphxai_data.building.engine import _checked_threads
    from graphxai_data.files.plugins import Origin
    from graphxai_data.manifest import software_versions

    class Client:
        def scheduler_info(self, n_workers: int) -> dict:
            return {"workers": {"tcp://w": {"nthreads": 1}}}

        def run(self, function: Callable[..., dict], *arguments: object) -> dict:
            return {"tcp://w": {**software_versions(), "toy-sets": "not installed"}}

    plugin = Origin("generator", "toy", "toy-sets", "1.2")
    with pytest.raises(InputError, match=r"has toy-sets not installed \(here 1.2\)"):
        _checked_threads(Client(), "tcp://s", plugin)
