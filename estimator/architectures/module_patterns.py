"""Which layers of which tensors a quantization config names: exact modules, `*` wildcards and `re:` expressions.

Lists name every layer apart, hundreds of entries long. Layer numbers are folded into `{layer}` first, so that a few
patterns are matched against a few tensor names, whatever the depth.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

_NUMBER = re.compile(r"(^|\.)(layers|h|blocks)\.(\d+)(?=\.|\*|$)")
_PREFIXES = ("model.", "language_model.", "backbone.", "transformer.", "text_model.")
_ALL: Callable[[int], bool] = lambda layer: True  # noqa: E731


def module_of(tensor: str) -> str:
    """The module that a tensor belongs to, without the prefixes that differ between classes and checkpoints."""
    return strip(tensor.removesuffix(".weight"))


@lru_cache(maxsize=4096)
def strip(name: str) -> str:
    """`name` without leading "model." and the like."""
    while name.startswith(_PREFIXES):
        name = name.split(".", 1)[1]
    return name


class ModulePatterns:
    """A set of module patterns, asked with a module template (`layers.{layer}.mlp.down_proj`) and a layer."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._folded: dict[str, list[Callable[[int], bool]]] = {}
        self._numbers: dict[str, set[int]] = {}
        self._expressions: list[re.Pattern[str]] = []
        for pattern in patterns:
            self._add(pattern)
        self._matchers = [(key, _matcher(key)) for key in {*self._folded, *self._numbers}]

    def _add(self, pattern: str) -> None:
        if pattern.startswith("re:"):
            self._expressions.append(re.compile(pattern[3:]))
            return
        if ".experts." in pattern and re.search(r"\.experts\.[1-9]", pattern):
            return  # experts are alike: the first stands for all
        name = strip(pattern).replace(".experts.0.", ".experts.{expert}.")
        found = _NUMBER.search(name)
        if not found:
            self._folded.setdefault(name, []).append(_ALL)
            return
        digits, after = found.group(3), name[found.end() :]
        template = f"{name[: found.start(3)]}{{layer}}{after}"
        if after.startswith("*"):  # "layers.1*" also means 10 to 19
            self._folded.setdefault(template, []).append(lambda layer: str(layer).startswith(digits))
        else:
            self._numbers.setdefault(template, set()).add(int(digits))

    def layers(self, tensor: str, layers: tuple[int, ...]) -> frozenset[int]:
        """The layers of `layers` in which `tensor` is named; for a tensor outside the layers pass (0,)."""
        module, found = module_of(tensor), set[int]()
        for key, matches in self._matchers:
            if matches(module):
                found.update(layer for layer in layers if layer in self._numbers.get(key, ()))
                for holds in self._folded.get(key, ()):
                    found.update(filter(holds, layers))
        for expression in self._expressions:
            found.update(_expression_layers(expression, tensor.removesuffix(".weight"), layers))
        return frozenset(found)

    def __bool__(self) -> bool:
        return bool(self._matchers or self._expressions)


def _matcher(key: str) -> Callable[[str], bool]:
    """Exact module, one of its parents, or one of its parts; with `*`, the whole name or a parent of it."""
    if "*" in key:
        expression = re.compile(re.escape(key).replace(r"\*", ".*") + r"(\..*)?$")
        return lambda module: expression.match(module) is not None
    dotted = f".{key}."
    if key.startswith("layers."):  # a full path: not the same names inside a tower or a prediction layer
        return lambda module: f".{module}.".startswith(dotted)
    return lambda module: dotted in f".{module}."


def _expression_layers(expression: re.Pattern[str], name: str, layers: tuple[int, ...]) -> Iterable[int]:
    """Expressions that mention digits are tried layer by layer, the others once."""
    name = name.replace("{expert}", "0")
    if not re.search(r"\d", expression.pattern.replace(r"\d", "")):
        return layers if expression.search(name.replace("{layer}", "0")) else ()
    return [layer for layer in layers if expression.search(name.replace("{layer}", str(layer)))]
