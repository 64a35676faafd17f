"""The sources there are, found by listing their folders: adding a module is all it takes."""

import importlib
import pkgutil
from functools import cache
from types import ModuleType

from fitmart.flows.sources import models, prices, tokens

FOLDERS: dict[str, ModuleType] = {"models": models, "prices": prices, "tokens": tokens}


@cache
def modules(kind: str) -> tuple[ModuleType, ...]:
    """Modules of `flows/sources/<kind>` that name a SOURCE_ID, sorted by name; helpers beside them have none."""
    package = FOLDERS[kind]
    found = (
        importlib.import_module(f"{package.__name__}.{info.name}")
        for info in pkgutil.iter_modules(package.__path__)
        if not info.ispkg
    )
    return tuple(sorted((m for m in found if hasattr(m, "SOURCE_ID")), key=lambda m: m.__name__))


def live(kind: str) -> tuple[ModuleType, ...]:
    """Those that fetch from the network."""
    return tuple(m for m in modules(kind) if hasattr(m, "fetch"))
