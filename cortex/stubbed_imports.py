"""
Imports libraries without packages that they name and this program never calls through them.

While they are imported, names from a spared package, or module of one, are placeholders; afterwards it can be
imported as it is. One thread at a time imports so, and only it finds the placeholders.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

_Method = TypeVar("_Method")


@contextmanager
def stubbing(*packages: str) -> Iterator[None]:
    """Let what is imported within find placeholders in `packages`; those that are imported already stay."""
    with _IMPORTING:
        stand_in = _Stubs(frozenset(name for name in packages if name not in sys.modules))
        sys.meta_path.insert(0, stand_in)
        try:
            yield
        finally:
            sys.meta_path.remove(stand_in)
            # A copy: other threads import meanwhile.
            for name, module in sys.modules.copy().items():
                if isinstance(module, _Placeholders):
                    del sys.modules[name]


# Another thread would take a library that is half imported for the whole.
_IMPORTING = threading.RLock()


class _Stubs(MetaPathFinder, Loader):
    """Finds a module of placeholders for each module of `packages`."""

    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of such a module; None for every other."""
        is_ours = threading.get_ident() == self._thread
        if not is_ours or not any(f"{fullname}.".startswith(f"{name}.") for name in self._packages):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return _Placeholders(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Fill it: there is nothing to run."""


class _Placeholders(ModuleType):
    """A module in which every name is a class of its own; some are caught as exceptions, so all are."""

    @staticmethod
    def override(method: _Method) -> _Method:
        """Return a method as it is."""
        return method

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        placeholder = type(name, (Exception,), {})
        setattr(self, name, placeholder)
        return placeholder
