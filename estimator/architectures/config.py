"""A typed, recording view of a config.json.

Fields have several names and places: a multimodal config nests the text model in `text_config`, older families have
their own words, and a missing field takes the class default of its `model_type` in transformers, never Llama's. A
field that is present but null is a statement (no window, no low-rank query) and stops the search for a default.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fitmart.estimator.anatomy import AnatomyError

# Beyond these a size is a slip of the pen, not a model: the largest published ones stay below a tenth of each.
MAX_LAYERS = 2_000
MAX_SIZE = 4_000_000
MAX_TOKENS = 1_000_000_000

Path = tuple[str, ...]


class Missing:
    """The mark of a field that no scope holds (null is a value)."""


MISSING = Missing()


class Reads:
    """Which field paths of one config were read; shared by all views of it."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()

    def trim(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """`raw` with exactly the fields that were read."""
        return self._trim(raw, ())

    def _trim(self, raw: Mapping[str, Any], at: Path) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, value in raw.items():
            path = (*at, key)
            if path in self.paths:
                kept[key] = value
            elif isinstance(value, Mapping) and any(p[: len(path)] == path for p in self.paths):
                kept[key] = self._trim(value, path)
        return kept


class Config:
    """Looks a name up in `scopes` (first hit wins), then in the class defaults of the model type."""

    def __init__(
        self,
        model_id: str,
        scopes: Sequence[tuple[Path, Mapping[str, Any]]],
        *,
        reads: Reads,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.model_id = model_id
        self.reads = reads
        self._scopes = tuple(scopes)
        self._defaults = defaults or {}

    def fail(self, reason: str) -> AnatomyError:
        """The error to raise: one line, naming the model."""
        return AnatomyError(f"{self.model_id}: {reason}")

    def has(self, name: str) -> bool:
        """Whether the config itself states the field (null counts)."""
        return self._stated(name) is not MISSING

    def _stated(self, name: str) -> Any:
        null = False
        for path, scope in self._scopes:
            if name in scope:
                self.reads.paths.add((*path, name))
                if scope[name] is not None:
                    return scope[name]
                null = True
        return None if null else MISSING

    def get(self, *names: str, default: Any = MISSING) -> Any:
        """The first of `names` with a value; then a null; then the class default; then `default`."""
        null = False
        for name in names:
            value = self._stated(name)
            if value is None:
                null = True
            elif value is not MISSING:
                return value
        if null:
            return None
        for name in names:
            if name in self._defaults:
                return self._defaults[name]
        return default

    # ---- typed getters ------------------------------------------------------------------------------------------- #

    def integer(self, *names: str, default: int | None = None, low: int = 1, high: int = MAX_SIZE) -> int:
        """A required whole number in low..high; `default` serves where it is absent or null."""
        value = self.optional_integer(*names, low=low, high=high)
        if value is None:
            value = default
        if value is None:
            raise self.fail(f"config.json lacks {' (or '.join(names)}{')' * (len(names) - 1)}")
        return value

    def optional_integer(
        self, *names: str, default: int | None = None, low: int = 0, high: int = MAX_SIZE
    ) -> int | None:
        """A whole number in low..high, or None where it is null or nowhere stated."""
        value = self.get(*names, default=default)
        return None if value is None or value is MISSING else self._whole(names[0], value, low, high)

    def number(self, *names: str, default: float) -> float:
        """A real number, no larger than any size."""
        value = self.get(*names, default=default)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail(f"{names[0]} is {_shown(value)}, not a number")
        if not -MAX_SIZE <= value <= MAX_SIZE:  # nor is it NaN
            raise self.fail(f"{names[0]} is {_shown(value)}, outside -{MAX_SIZE:,} to {MAX_SIZE:,}")
        return float(value)

    def boolean(self, *names: str, default: bool = False) -> bool:
        """True or false."""
        value = self.get(*names, default=default)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fail(f"{names[0]} is {_shown(value)}, not true or false")
        return value

    def string(self, *names: str, default: str | None = None) -> str | None:
        """A text, or None."""
        value = self.get(*names, default=default)
        if value is None or isinstance(value, str):
            return value
        raise self.fail(f"{names[0]} is {_shown(value)}, not a text")

    def items(self, *names: str, length: int | None = None, at_least: int | None = None) -> list[Any] | None:
        """A list (of `length`, or at least that long and then cut), or None."""
        value = self.get(*names, default=None)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self.fail(f"{names[0]} is {_shown(value)}, not a list")
        if length is not None and len(value) != length:
            raise self.fail(f"{names[0]} has {len(value)} entries, not {length}")
        if at_least is not None:
            if len(value) < at_least:
                raise self.fail(f"{names[0]} has {len(value)} entries, fewer than {at_least}")
            value = value[:at_least]
        return list(value)

    def integers(
        self,
        *names: str,
        length: int | None = None,
        at_least: int | None = None,
        low: int = 0,
        high: int = MAX_SIZE,
    ) -> list[int] | None:
        """A list of whole numbers, or None."""
        value = self.items(*names, length=length, at_least=at_least)
        return None if value is None else [self._whole(names[0], v, low, high) for v in value]

    def per_layer(self, *names: str, layers: int, default: int | None = None, low: int = 0) -> list[int]:
        """One whole number a layer, from a number or from a list of them."""
        value = self.get(*names, default=default)
        if isinstance(value, list | tuple):
            return self.integers(*names, at_least=layers, low=low) or []
        return [self.integer(*names, default=default, low=low)] * layers

    def section(self, *names: str, defaults: Mapping[str, Any] | None = None) -> "Config | None":
        """The nested object of that name as a view of its own, or None."""
        for name in names:
            for path, scope in self._scopes:
                value = scope.get(name)
                if isinstance(value, Mapping):
                    self.reads.paths.add((*path, name, ""))  # an empty section is a statement too
                    return Config(self.model_id, [((*path, name), value)], reads=self.reads, defaults=defaults)
                if value is not None:
                    raise self.fail(f"{name} is {_shown(value)}, not an object")
        return None

    def aside(self, other: Mapping[str, Any]) -> "Config":
        """A view of another file about the same model; what is read there is no field of this config."""
        return Config(self.model_id, [((), other)], reads=Reads())

    def empty(self) -> "Config":
        """A section with nothing in it: everything takes its default."""
        return Config(self.model_id, [], reads=self.reads)

    def text(self, nested: "Config | None", defaults: Mapping[str, Any]) -> "Config":
        """The text model's view: the nested section first, then this level, then `defaults`."""
        scopes = (*(nested._scopes if nested else ()), *self._scopes)
        return Config(self.model_id, scopes, reads=self.reads, defaults=defaults)

    def _whole(self, name: str, value: Any, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise self.fail(f"{name} is {_shown(value)}, not a number")
        if value in (float("inf"), float("-inf")) or value != int(value):
            raise self.fail(f"{name} is {_shown(value)}, not a whole number")
        if not low <= value <= high:
            raise self.fail(f"{name} is {_shown(value)}, outside {low} to {high:,}")
        return int(value)


def _shown(value: object) -> str:
    """A value for a message: short, its type told by its spelling."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"
