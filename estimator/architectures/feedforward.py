"""Feed-forward blocks: dense MLPs, routed experts with their router and shared experts."""

from collections.abc import Sequence
from dataclasses import dataclass

from fitmart.estimator.anatomy import Component
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Layers, Parts

GATED = ("gate_proj", "up_proj", "down_proj")
PLAIN = ("up_proj", "down_proj")


def mlp(
    parts: Parts,
    prefix: str,
    hidden: int,
    width: int,
    layers: Layers,
    *,
    names: Sequence[str] = GATED,
    bias: bool = False,
    fused: str | None = None,
    component: Component = "mlp",
    copies: int = 1,
    suffix: str = ".weight",
) -> None:
    """A feed-forward: all names but the last widen, the last narrows. `fused`: gate and up in one matrix."""
    *wide, down = names
    ups = [(fused, width * len(wide))] if fused else [(name, width) for name in wide]
    for name, rows in ups:
        full = prefix + name
        parts.add(component, full + suffix, rows, hidden, layers=layers, copies=copies, axis="rows")
        if bias:
            parts.add(component, f"{full}.bias", rows, layers=layers, copies=copies, axis="rows")
    full = prefix + down
    parts.add(component, full + suffix, hidden, width, layers=layers, copies=copies, axis="columns")
    if bias:
        parts.add(component, f"{full}.bias", hidden, layers=layers, copies=copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """The sizes of a mixture of experts."""

    experts: int
    top_k: int
    width: int
    shared_width: int = 0
    layers: Layers = ()


EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
TOP_K = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_k",
    "moe_topk",
    "top_k_experts",
    "moe_top_k",
    "experts_per_token",
)
SHARED_COUNTS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")


def read_moe(c: Config, layers: Layers, *, width: str = "moe_intermediate_size") -> Moe:
    """Experts, top-k and widths under all names in use; the expert's width falls back to `intermediate_size`.

    Where widths or counts are lists (Hunyuan), their entries must agree: all layers are alike in published models.
    """
    experts = _uniform(c, EXPERT_COUNTS, None)
    expert_width = _uniform(c, (width,), None) or c.integer("intermediate_size")
    shared = c.optional_integer("shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size")
    if shared is None:
        shared = (_uniform(c, SHARED_COUNTS, 0) or 0) * expert_width
    top_k = _uniform(c, TOP_K, None)
    if experts is None or top_k is None:
        raise c.fail(f"config.json lacks {'num_experts' if experts is None else 'num_experts_per_tok'}")
    if top_k > experts:
        raise c.fail(f"num_experts_per_tok {top_k} exceeds {experts} experts")
    return Moe(experts=experts, top_k=top_k, width=expert_width, shared_width=shared, layers=layers)


def _uniform(c: Config, names: Sequence[str], default: int | None) -> int | None:
    value = c.get(*names, default=default)
    if not isinstance(value, list | tuple):
        return c.optional_integer(*names, default=default)
    numbers = set(c.integers(*names) or [])
    if len(numbers) != 1:
        raise c.fail(f"{names[0]} differs between layers: {sorted(numbers)}")
    return numbers.pop()


def experts(
    parts: Parts,
    block: str,
    hidden: int,
    moe: Moe,
    *,
    names: Sequence[str] = GATED,
    router: str = "gate",
    router_bias: bool = False,
    correction: str | None = None,
    pattern: str = "experts.{expert}.",
    shared: str = "shared_experts.",
    shared_names: Sequence[str] = GATED,
    shared_gate: str | None = None,
    fused: str | None = None,
    is_correction_param: bool = False,
    inner: int | None = None,
    is_bare: bool = False,
) -> None:
    """Routed experts, router, and shared experts of the layers of `moe`, under the prefix `block`.

    `correction`: the router's load-balancing bias, a buffer unless the class makes it a parameter. `inner`: experts
    work on a vector of that width instead of the hidden one. `is_bare`: their tensors are named without ".weight".
    """
    parts.linear("router", block + router, moe.experts, hidden, layers=moe.layers, bias=router_bias)
    if correction and is_correction_param:
        parts.add("router", block + correction, moe.experts, layers=moe.layers)
    elif correction:
        parts.buffer("router", block + correction, moe.experts, layers=moe.layers)
    mlp(
        parts,
        block + pattern,
        inner or hidden,
        moe.width,
        moe.layers,
        names=names,
        fused=fused,
        component="experts",
        copies=moe.experts,
        suffix="" if is_bare else ".weight",
    )
    if moe.shared_width:
        mlp(parts, block + shared, hidden, moe.shared_width, moe.layers, names=shared_names, fused=fused)
        if shared_gate:
            parts.linear("router", block + shared_gate, 1, hidden, layers=moe.layers)


def moe_layers(c: Config, layers: int) -> Layers:
    """Which layers hold experts, by whichever field the family uses."""
    stated = c.items("mlp_layer_types", at_least=layers)
    if stated is not None:
        return tuple(i for i, kind in enumerate(stated) if kind == "sparse")
    freq = c.get("moe_layer_freq", default=1)
    if isinstance(freq, list | tuple):
        flags = c.integers("moe_layer_freq", at_least=layers, high=layers) or []
        return tuple(i for i, flag in enumerate(flags) if flag)
    step = c.integer("moe_layer_freq", "decoder_sparse_step", default=1)
    dense = set(c.integers("mlp_only_layers") or [])
    first = c.integer("first_k_dense_replace", "num_dense_layers", default=0, low=0, high=layers)
    return tuple(
        i for i in range(first, layers) if i not in dense and (i + 1 if c.has("decoder_sparse_step") else i) % step == 0
    )
