"""Blocks that keep a state of fixed size instead of keys and values: Mamba 1 and 2, short convolutions, delta rules."""

from dataclasses import dataclass

from fitmart.estimator.anatomy import Cache
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Layers, Parts


def linear_state(
    parts: Parts, layers: Layers, *, heads: int, key_dim: int, value_dim: int, element_bytes: int = 2
) -> None:
    """A recurrent state of heads × key_dim × value_dim a layer, as wide as the config says or else `element_bytes`."""
    if layers:
        stated = parts.config.string("mamba_ssm_cache_dtype", "mamba_ssm_dtype")
        parts.caches.append(
            Cache(
                kind="linear_state",
                layers=layers,
                fixed_elements=heads * key_dim * value_dim,
                state_heads=heads,
                state_key_dim=key_dim,
                state_value_dim=value_dim,
                state_element_bytes=4 if stated == "float32" else element_bytes,
            )
        )


def conv_state(parts: Parts, layers: Layers, *, channels: int, kernel: int) -> None:
    """The last kernel - 1 inputs of a causal convolution."""
    if layers and kernel > 1:
        parts.caches.append(
            Cache(
                kind="conv_state",
                layers=layers,
                fixed_elements=channels * (kernel - 1),
                conv_channels=channels,
                conv_kernel=kernel,
            )
        )


def causal_conv(parts: Parts, name: str, channels: int, kernel: int, layers: Layers, *, bias: bool) -> None:
    """A depthwise convolution's kernel."""
    parts.linear("attention", name, channels, kernel, layers=layers, axis="rows", bias=bias)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba1:
    """Sizes of a selective state space (Mamba 1)."""

    inner: int
    state: int
    kernel: int
    rank: int
    conv_bias: bool
    bias: bool


def read_mamba1(c: Config, hidden: int) -> Mamba1:
    """`time_step_rank` "auto" is hidden / 16, rounded up."""
    rank = c.get("mamba_dt_rank", "time_step_rank", default="auto")
    rank = -(-hidden // 16) if rank in ("auto", None) else c.integer("mamba_dt_rank", "time_step_rank")
    expand = c.integer("mamba_expand", "expand", default=2)
    return Mamba1(
        inner=expand * hidden,
        state=c.integer("mamba_d_state", "state_size", default=16),
        kernel=c.integer("mamba_d_conv", "conv_kernel", default=4),
        rank=rank,
        conv_bias=c.boolean("mamba_conv_bias", "use_conv_bias", default=True),
        bias=c.boolean("mamba_proj_bias", "use_bias"),
    )


def mamba1(parts: Parts, prefix: str, hidden: int, m: Mamba1, layers: Layers) -> None:
    """Weights and states of Mamba-1 layers."""
    parts.add("attention", f"{prefix}A_log", m.inner, m.state, layers=layers, axis="rows")
    parts.add("attention", f"{prefix}D", m.inner, layers=layers, axis="rows")
    causal_conv(parts, f"{prefix}conv1d", m.inner, m.kernel, layers, bias=m.conv_bias)
    parts.linear("attention", f"{prefix}in_proj", 2 * m.inner, hidden, layers=layers, axis="rows", bias=m.bias)
    parts.linear("attention", f"{prefix}x_proj", m.rank + 2 * m.state, m.inner, layers=layers, axis="columns")
    parts.linear("attention", f"{prefix}dt_proj", m.inner, m.rank, layers=layers, axis="rows", bias=True)
    parts.linear("attention", f"{prefix}out_proj", hidden, m.inner, layers=layers, axis="columns", bias=m.bias)
    linear_state(parts, layers, heads=m.inner, key_dim=m.state, value_dim=1)
    conv_state(parts, layers, channels=m.inner, kernel=m.kernel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2:
    """Sizes of a state space dual (Mamba 2)."""

    inner: int
    heads: int
    head_dim: int
    state: int
    groups: int
    kernel: int
    conv_bias: bool
    bias: bool
    has_norm: bool = True

    @property
    def channels(self) -> int:
        """Inputs of the convolution: x, B and C."""
        return self.inner + 2 * self.groups * self.state


def read_mamba2(c: Config, hidden: int) -> Mamba2:
    """Sizes under the names of Bamba and Granite (mamba_*), Nemotron-H (ssm_state_size, mamba_num_heads), Mamba 2."""
    heads = c.integer("mamba_n_heads", "mamba_num_heads", "n_mamba_heads", "num_heads", default=128)
    dim = c.get("mamba_d_head", "mamba_head_dim", "mamba_headdim", default=None)
    stated = c.optional_integer("mamba_d_ssm", low=1)
    inner = stated or c.integer("mamba_expand", "expand", default=2) * hidden
    dim = inner // heads if dim in (None, "auto") else c.integer("mamba_d_head", "mamba_head_dim", "mamba_headdim")
    return Mamba2(
        inner=heads * dim,
        heads=heads,
        head_dim=dim,
        state=c.integer("mamba_d_state", "ssm_state_size", "state_size", default=128),
        groups=c.integer("mamba_n_groups", "n_groups", "mamba_ngroups", default=1),
        kernel=c.integer("mamba_d_conv", "conv_kernel", default=4),
        conv_bias=c.boolean("mamba_conv_bias", "use_conv_bias", default=True),
        bias=c.boolean("mamba_proj_bias", "use_bias"),
    )


def mamba2(parts: Parts, prefix: str, hidden: int, m: Mamba2, layers: Layers) -> None:
    """Weights and states of Mamba-2 layers."""
    for name in ("dt_bias", "A_log", "D"):
        parts.add("attention", prefix + name, m.heads, layers=layers, axis="rows")
    causal_conv(parts, f"{prefix}conv1d", m.channels, m.kernel, layers, bias=m.conv_bias)
    rows = m.inner + m.channels + m.heads
    parts.linear("attention", f"{prefix}in_proj", rows, hidden, layers=layers, axis="rows", bias=m.bias)
    if m.has_norm:
        parts.norm(f"{prefix}norm", m.inner, layers=layers)
    parts.linear("attention", f"{prefix}out_proj", hidden, m.inner, layers=layers, axis="columns", bias=m.bias)
    linear_state(parts, layers, heads=m.heads, key_dim=m.state, value_dim=m.head_dim)
    conv_state(parts, layers, channels=m.channels, kernel=m.kernel)
