"""
Imports LanceDB without what datasets in a folder never use.

That is a generated HTTP client of several hundred models, for catalogues elsewhere, and a check of overridden
methods that reads bytecode: together 1.3 of the 1.7 s of processor time that importing LanceDB takes (0.40).
While it is imported, names from these packages are placeholders; afterwards they can be imported as they are.
"""

import sys
from collections.abc import Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

_Method = TypeVar("_Method")

# For LanceDB's namespaces; and marks of methods, which Python 3.12 has itself.
SPARED = ("lance_namespace", "lance_namespace_urllib3_client", "overrides")


@cache
def lancedb() -> Any:
    """Return the module `lancedb`, imported at the first call."""
    if "lancedb" in sys.modules:  # somebody imported all of it
        return sys.modules["lancedb"]
    stand_in = _Spared()
    sys.meta_path.insert(0, stand_in)
    try:
        import lancedb
    finally:
        sys.meta_path.remove(stand_in)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _Placeholders)]:
            del sys.modules[name]
    return lancedb


class _Spared(MetaPathFinder, Loader):
    """Finds a module of placeholders for each module that is spared and not imported yet."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of such a module; None for every other."""
        if fullname.partition(".")[0] not in SPARED:
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
