import pytest

from graphxai_data.files import jit as module


def test_functions_are_compiled_without_a_writable_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_cache(*_: object, cache: bool = False, **__: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(module.numba, "njit", lambda *a, **k: a[0] if a else no_cache(**k))
    assert module.compiled(sorted)([2, 1]) == [1, 2]
