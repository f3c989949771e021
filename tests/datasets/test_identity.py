"""A digest of a transform changes with its values and its code, and with nothing else."""

import copy
import dataclasses
import functools
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T  # noqa: N812 - its usual name
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.datasets.identity import UnidentifiedError, identity
from tests.conftest import run_python


def defined(code: str, **names: Any) -> Any:
    """Return `f` after running this code as a script of a user would."""
    space: dict[str, Any] = {"__name__": "__main__", "torch": torch, "np": np, "T": T, **names}
    exec(code, space)  # noqa: S102 - the tests' own code
    return space["f"]


PAIRS = {
    "constant": ("f = lambda d: d.x + 1", "f = lambda d: d.x + 2"),
    "operation": ("f = lambda d: d.x + 1", "f = lambda d: d.x - 1"),
    "attribute": ("f = lambda d: d.x", "f = lambda d: d.y"),
    "default": ("def f(d, k=1): return k", "def f(d, k=2): return k"),
    "keyword default": ("def f(d, *, k=1): return k", "def f(d, *, k=2): return k"),
    "global value": ("k = 1\ndef f(d): return k", "k = 2\ndef f(d): return k"),
    "global function": (
        "def g(d): return 1\ndef f(d): return g(d)", "def g(d): return 2\ndef f(d): return g(d)"
    ),
    "closure": (
        "def m(k):\n return lambda d: k\nf = m(1)", "def m(k):\n return lambda d: k\nf = m(2)"
    ),
    "inner function": (
        "def f(d):\n def g(): return 1\n return g()", "def f(d):\n def g(): return 2\n return g()"
    ),
    "global of an inner function": (
        "k = 1\ndef f(d): return [k for _ in d]", "k = 2\ndef f(d): return [k for _ in d]"
    ),
    "tensor": ("f = torch.tensor([1., 2.])", "f = torch.tensor([1., 3.])"),
    "dtype": ("f = torch.zeros(2)", "f = torch.zeros(2, dtype=torch.int32)"),
    "shape": ("f = np.zeros((2, 3))", "f = np.zeros((3, 2))"),
    "argument of a transform": ("f = T.Constant(1.0)", "f = T.Constant(2.0)"),
    "part of a transform": (
        "f = T.Compose([T.AddSelfLoops(), T.Constant()])",
        "f = T.Compose([T.AddSelfLoops(), T.ToUndirected()])",
    ),
    "class of a transform": ("f = T.AddSelfLoops()", "f = T.AddRemainingSelfLoops()"),
    "method": (
        "class A:\n def __call__(s, d): return 1\nf = A()",
        "class A:\n def __call__(s, d): return 2\nf = A()",
    ),
    "inherited method": (
        "class B:\n def g(s): return 1\nclass A(B):\n def __call__(s, d): return s.g()\nf = A()",
        "class B:\n def g(s): return 2\nclass A(B):\n def __call__(s, d): return s.g()\nf = A()",
    ),
    "class attribute": ("class A:\n k = 1\nf = A()", "class A:\n k = 2\nf = A()"),
    "slot": (
        "class A:\n __slots__ = ('k',)\nf = A()\nf.k = 1",
        "class A:\n __slots__ = ('k',)\nf = A()\nf.k = 2",
    ),
    "property": (
        "class A:\n @property\n def k(s): return 1\nf = A()",
        "class A:\n @property\n def k(s): return 2\nf = A()",
    ),
    "exception": (
        "def f(d):\n try: return d\n except ValueError: return 1",
        "def f(d):\n try: return d\n except KeyError: return 1",
    ),
    "import": (
        "def f(d):\n import math\n return math", "def f(d):\n import cmath\n return cmath"
    ),
    "true and one": ("f = [True]", "f = [1]"),
    "body under the name of a function of PyG": (
        "import functools\n@functools.wraps(T.Constant.forward)\ndef f(d): return d.x * 2",
        "import functools\n@functools.wraps(T.Constant.forward)\ndef f(d): return d.x * 3",
    ),
    "body under the name of a builtin": (
        "import functools\nf = functools.wraps(len)(lambda d: 1)",
        "import functools\nf = functools.wraps(len)(lambda d: 2)",
    ),
    "class under the name of one of PyG": (
        "class f:\n __module__ = T.__name__\n def __call__(s, d): return 1",
        "class f:\n __module__ = T.__name__\n def __call__(s, d): return 2",
    ),
    "what an installed decorator wraps": (
        "@torch.no_grad()\ndef f(d): return 1", "@torch.no_grad()\ndef f(d): return 2"
    ),
    "what a function says that it wraps": (
        "def f(d): return 1\nf.__wrapped__ = lambda d: 1",
        "def f(d): return 1\nf.__wrapped__ = lambda d: 2",
    ),
    "private slot": (
        "class A:\n __slots__ = ('__k',)\n def __init__(s, k): s.__k = k\nf = A(1)",
        "class A:\n __slots__ = ('__k',)\n def __init__(s, k): s.__k = k\nf = A(2)",
    ),
    "private slot of a private class": (
        "class __A:\n __slots__ = '__k'\n def __init__(s, k): s.__k = k\nf = __A(1)",
        "class __A:\n __slots__ = '__k'\n def __init__(s, k): s.__k = k\nf = __A(2)",
    ),
    "empty slot": (
        "class A:\n __slots__ = ('k',)\nf = A()",
        "class A:\n __slots__ = ('k',)\nf = A()\nf.k = None",
    ),
    "factory of a defaultdict": (
        "from collections import defaultdict\nf = defaultdict(lambda: 1)",
        "from collections import defaultdict\nf = defaultdict(lambda: 2)",
    ),
    "attribute of a list": (
        "class A(list): pass\nf = A()\nf.k = 1", "class A(list): pass\nf = A()\nf.k = 2"
    ),
    "slot of a dictionary": (
        "class A(dict): __slots__ = ('k',)\nf = A()\nf.k = 1",
        "class A(dict): __slots__ = ('k',)\nf = A()\nf.k = 2",
    ),
    "content of a list that hides it": (
        "class A(list):\n def __iter__(s): return iter(())\nf = A([1])",
        "class A(list):\n def __iter__(s): return iter(())\nf = A([2])",
    ),
    "order of a dictionary": (
        "from collections import OrderedDict\nf = OrderedDict(a=1, b=2)",
        "from collections import OrderedDict\nf = OrderedDict(a=1, b=2)\nf.move_to_end('a')",
    ),
    "value of an enum": (
        "from enum import Enum\nclass A(Enum): K = [1]\nf = lambda d: A.K",
        "from enum import Enum\nclass A(Enum): K = [2]\nf = lambda d: A.K",
    ),
    "metaclass": (
        "class M(type):\n def k(c): return 1\nclass f(metaclass=M): pass",
        "class M(type):\n def k(c): return 2\nclass f(metaclass=M): pass",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PAIRS)
def test_a_change_changes_the_digest_and_the_same_again_does_not(kind: str) -> None:
    first, second = PAIRS[kind]
    assert identity(defined(first)) != identity(defined(second))
    assert identity(defined(first)) == identity(defined(first))
    moved = "# A comment, and other lines.\n\n" + first
    assert identity(defined(moved)) == identity(defined(first))


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
))  # fmt: skip
def test_equal_values_have_equal_digests(value: Any) -> None:
    assert identity(copy.deepcopy(value)) == identity(value)
    assert identity([value]) != identity(value)


def test_another_process_finds_the_same_digest(tmp_path: Path) -> None:
    code = (
        "import sys, torch\nimport torch_geometric.transforms as T\n"
        "from graphxai_data.datasets.identity import identity\n"
        "names = {'a', 'b', 'c'}\n"
        "def pre(data): return (torch.relu(data.x), data.k in {'p', 'q', 'r'}, names)\n"
        "print(identity(T.Compose([pre, T.AddSelfLoops(), torch.nn.Identity()])))\n"
    )
    (tmp_path / "a.py").write_text(code)
    again = "import runpy; runpy.run_path('a.py', run_name='__main__')"
    runs = [run_python(code), run_python(again, cwd=tmp_path)]
    assert [run.stderr for run in runs] == ["", ""]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) == 65


class Doubled:
    def __call__(self, data: Any) -> Any:
        return super().__repr__()


@dataclasses.dataclass
class Scaled:
    factor: float = 2.0

    def __call__(self, data: Any) -> Any:
        return self.factor


def factorial(n: int) -> int:
    return n * factorial(n - 1) if n else 1


@pytest.mark.parametrize(
    "thing",
    [
        T.AddLaplacianEigenvectorPE(3), T.RandomNodeSplit(), T.GDC(), factorial, torch.relu, len,
        np.sqrt, functools.partial(factorial, 3), Doubled(), Scaled(), Scaled(3.0).__call__,
        torch.nn.Linear(2, 2, device="meta").reset_parameters.__func__,
    ],
)  # fmt: skip
def test_usual_transforms_have_a_digest(thing: object) -> None:
    assert identity(thing) == identity(thing)


def test_objects_of_a_user_differ_by_their_values() -> None:
    assert identity(Scaled(2.0)) == identity(Scaled())
    assert identity(Scaled(2.0)) != identity(Scaled(3.0))
    assert identity(functools.partial(factorial, 3)) != identity(functools.partial(factorial, 4))


RNG, NUMPY_RNG, TORCH_RNG = random.Random(0), np.random.default_rng(0), torch.Generator()  # noqa: S311


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        (lambda data: RNG.random(), "it holds an object of type Random, which has no digest"),
        (
            lambda data: NUMPY_RNG.random(),
            "it holds an object of type Generator, which has no digest",
        ),
        (lambda data: torch.rand(2, generator=TORCH_RNG), "it holds an object of type Generator"),
        (lambda data: eval("data.x"), "it calls eval, which may run anything"),  # noqa: S307
        (np.array([object()]), "an array of Python objects"),
        (torch.eye(2).to_sparse(), "a tensor of layout torch.sparse_coo"),
        (object(), "it holds an object of type object, which has no digest"),
    ],
)
def test_what_has_no_digest_is_refused_with_the_reason(thing: object, reason: str) -> None:
    with pytest.raises(UnidentifiedError, match=reason):
        identity(thing)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("K = 1\ndef f(d): return globals()['K']", "globals"),
        ("def f(d): return locals()['d']", "locals"),
        ("import torch as t\ndef f(d): return vars(t)['relu']", "vars"),
        ("def f(d): return [exec(k) for k in d]", "exec"),
        ("def f(d): return __import__('mine').g(d)", "__import__"),
        ("import builtins\ndef f(d): return builtins.__import__('mine')", "__import__"),
        ("import builtins\ndef f(d): return builtins.eval('d')", "eval"),
        ("g = globals\ndef f(d): return g()['K']", "globals"),
        ("def f(d, g=globals): return g()['K']", "globals"),
        ("import importlib\ndef f(d): return importlib.import_module('mine')", "import_module"),
        ("from importlib import import_module as g\ndef f(d): return g('m')", "import_module"),
        ("def f(d):\n import importlib as i\n return i.import_module('m')", "import_module"),
        ("import sys\ndef f(d): return sys.modules['mine'].g(d)", "sys.modules"),
        ("from sys import modules\ndef f(d): return modules['mine'].g(d)", "sys.modules"),
        ("def f(d):\n import sys\n return sys.modules['mine'].g(d)", "sys.modules"),
        ("def f(d):\n from sys import modules\n return modules['mine']", "sys.modules"),
        ("def f(d): return f.__globals__['K']", "__globals__"),
    ],
)
def test_code_that_may_reach_anything_is_refused(code: str, name: str) -> None:
    with pytest.raises(UnidentifiedError, match=f"it calls {name}, which may run anything"):
        identity(defined(code))


def test_methods_that_are_only_called_like_those_are_not_refused() -> None:
    assert identity(defined("def f(d): return [*d.eval().modules()], d.vars, d.compile()"))


def test_a_slot_that_cannot_be_read_is_refused() -> None:
    code = "class A:\n __slots__ = ('j', 'k')\nf = A()\nf.j = f.k = 1\ndel A.k"
    with pytest.raises(UnidentifiedError, match="an object of type A, which has no digest"):
        identity(defined(code))


def test_a_list_or_dictionary_with_hidden_state_is_refused() -> None:
    with pytest.raises(UnidentifiedError, match="type Hidden, which has no digest"):
        identity(defined("class Hidden(dict): __slots__ = ('k',)\nf = Hidden()\ndel Hidden.k"))


def test_a_function_that_replaces_one_of_a_package_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = identity(T.Constant())
    monkeypatch.setattr(T.Constant, "forward", defined("f = lambda s, d: d"))
    assert identity(T.Constant()) != before


def test_a_module_that_is_not_installed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_helpers.py").write_text("__version__ = '1'\ndef g(d): return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    codes = (
        "import my_helpers\ndef f(d): return my_helpers.g(d)",
        "def f(d):\n from my_helpers import g\n return g(d)",
    )
    for code in codes:
        with pytest.raises(UnidentifiedError, match="'my_helpers', which is not an installed"):
            identity(defined(code))
    # The code of a function that was imported is seen.
    before = identity(defined("from my_helpers import g as f"))
    (tmp_path / "my_helpers.py").write_text("__version__ = '1'\ndef g(d): return 2  # changed\n")
    del sys.modules["my_helpers"]
    assert identity(defined("from my_helpers import g as f")) != before


def test_a_relative_import_is_refused() -> None:
    function: Callable[[Any], Any] = defined("def f(d):\n from . import g\n return g")
    with pytest.raises(UnidentifiedError, match="relative to its own"):
        identity(function)
