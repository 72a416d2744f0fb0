"""Each thing that `bayessel._compiled` uses of Numba without a promise.

Guards `bayessel._compiled`.
"""

import inspect

import numba
from numba.core import caching
from numba.extending import intrinsic

from bayessel._compiled import njit, stamp

FACTOR = 3.0


@njit(fastmath=True)
def inner(x):
    return FACTOR * x


@njit()
def outer(x):
    return inner(x) + 1.0


@intrinsic
def nothing(typingctx):
    return numba.void(), lambda context, builder, signature, args: context.get_dummy_value()


def test_a_dispatcher_keeps_its_function_and_options():
    assert inner.py_func(2.0) == 6.0
    assert inner.targetoptions["fastmath"] is True


def test_an_intrinsic_keeps_its_definition():
    assert inspect.isfunction(nothing._defn) and nothing._defn.__name__ == "nothing"


def test_a_dispatcher_takes_another_cache():
    """The attribute is read when code is compiled: ours is asked to load, and to save."""
    asked = []

    class Cache(type(numba.njit(lambda x: x)._cache)):
        def load_overload(self, sig, target_context):
            asked.append("load")

        def save_overload(self, sig, data):
            asked.append("save")

    plain = numba.njit(lambda x: x + 1.0)
    plain._cache = Cache()
    assert plain(1.0) == 2.0 and asked == ["load", "save"]


def test_the_cache_of_a_function_has_a_file_with_a_stamp():
    cache = caching.FunctionCache(outer.py_func)
    assert cache._py_func is outer.py_func
    assert hasattr(cache._cache_file, "_source_stamp")
    # the file compares the stamp that it holds with this attribute, which ours replaces
    assert "_source_stamp" in inspect.getsource(type(cache._cache_file)._load_index)
    assert isinstance(outer._cache, caching.FunctionCache)


def test_code_is_stamped_by_all_that_it_is_made_from(monkeypatch):
    before = stamp(outer.py_func)
    assert stamp(outer.py_func) == before != stamp(inner.py_func)
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    assert stamp(outer.py_func) != before
