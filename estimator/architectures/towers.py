"""The blocks of vision and audio towers: patch and position embeddings, transformer layers, projectors.

Everything here counts as vision (or audio), norms included: towers keep their dtype in quantized repositories.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fitmart.estimator.anatomy import Component
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Layers, Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The names and biases of one tower's transformer layer. `fused`: q, k and v in one matrix."""

    attention: str = "self_attn."
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "out_proj")
    fused: str | None = None
    attention_bias: bool = True
    o_bias: bool | None = None  # None: as attention_bias
    mlp: str = "mlp."
    mlp_names: Sequence[str] = ("fc1", "fc2")
    mlp_bias: bool = True
    norms: Sequence[str] = ("layer_norm1", "layer_norm2")
    norm_bias: bool = True
    scales: Sequence[str] = ()  # vectors of the hidden width (layer scale)
    qk_norms: Sequence[str] = ()


def norm(parts: Parts, name: str, size: int, *, layers: Layers = (), bias: bool = True) -> None:
    """A norm inside a tower."""
    parts.norm(name, size, layers=layers, bias=bias, component="vision")


def matrix(parts: Parts, name: str, rows: int, columns: int, *, bias: bool = True) -> None:
    """A projection outside the layers: whole on every GPU."""
    parts.linear("vision", name, rows, columns, bias=bias)


def blocks(
    parts: Parts,
    at: str,
    hidden: int,
    width: int,
    layers: Layers,
    block: Block,
    *,
    head_dim: int = 0,
    queries: int | None = None,
    component: Component = "vision",
) -> None:
    """The transformer layers of a tower; `queries`: the attention's inner width where it is not the hidden one."""
    inner, prefix = queries or hidden, at + block.attention
    q, k, v, o = block.names
    wide = [(block.fused, 3 * inner)] if block.fused else [(q, inner), (k, inner), (v, inner)]
    for name, rows in wide:
        parts.linear(component, prefix + name, rows, hidden, layers=layers, axis="rows", bias=block.attention_bias)
    o_bias = block.attention_bias if block.o_bias is None else block.o_bias
    parts.linear(component, prefix + o, hidden, inner, layers=layers, axis="columns", bias=o_bias)
    for name in block.qk_norms:
        norm(parts, prefix + name, head_dim, layers=layers, bias=False)
    *ups, down = block.mlp_names
    for name in ups:
        full = at + block.mlp + name
        parts.linear(component, full, width, hidden, layers=layers, axis="rows", bias=block.mlp_bias)
    full = at + block.mlp + down
    parts.linear(component, full, hidden, width, layers=layers, axis="columns", bias=block.mlp_bias)
    for name in block.norms:
        norm(parts, at + name, hidden, layers=layers, bias=block.norm_bias)
    for name in block.scales:
        parts.add(component, at + name, hidden, layers=layers)


def square(c: Config, name: str, default: int) -> int:
    """A side length: a number, or a list of two equal ones."""
    value = c.get(name, default=default)
    if isinstance(value, list | tuple):
        return (c.integers(name, low=1) or [default])[0]
    return c.integer(name, default=default)


def patches(c: Config, *, image: int = 224, patch: int = 14) -> int:
    """How many patches an image has."""
    return (square(c, "image_size", image) // square(c, "patch_size", patch)) ** 2


def patch_columns(c: Config, *, patch: int = 14, frames: int = 1) -> int:
    """Inputs of one patch: colours × frames × side²."""
    channels = c.integer("num_channels", "in_channels", "in_chans", default=3)
    return channels * frames * square(c, "patch_size", patch) ** 2


def depth(c: Config, default: int) -> Layers:
    """The indexes of a tower's layers."""
    return tuple(range(c.integer("num_hidden_layers", "depth", "num_layers", default=default, high=2_000)))
