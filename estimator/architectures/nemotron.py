"""NVIDIA's own shapes: Nemotron-H and Nemotron-3 (one sub-block a layer), and NAS models with unequal layers."""

from collections import defaultdict
from dataclasses import replace

from fitmart.estimator.architectures.attention import Heads, attention_cache, projections, read_heads
from fitmart.estimator.architectures.config import MAX_LAYERS, Config
from fitmart.estimator.architectures.decoder import LAYERS, Shape, Style, frame, read_shape
from fitmart.estimator.architectures.feedforward import PLAIN, mlp, read_moe
from fitmart.estimator.architectures.parts import Layers, Parts
from fitmart.estimator.architectures.registry import family
from fitmart.estimator.architectures.state_space import mamba2, read_mamba2

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
WORDS = {**{kind: kind for kind in LETTERS.values()}, "full_attention": "attention", "linear_attention": "mamba"}
STYLE = Style(embedding="embeddings", final_norm="norm_f")


def block_kinds(c: Config, pattern: str, names: str) -> list[str]:
    """What each "layer" is: letters of a pattern, or a list of words."""
    letters = c.string(pattern)
    if letters is not None:
        unknown = set(letters) - set(LETTERS)
        if unknown:
            raise c.fail(f"{pattern} has the unknown letter {sorted(unknown)[0]!r}")
        return [LETTERS[letter] for letter in letters]
    words = [str(word) for word in c.items(names) or []]
    unknown = set(words) - set(WORDS)
    if unknown:
        raise c.fail(f"{names} has the unknown kind {sorted(unknown)[0]!r}")
    return [WORDS[word] for word in words]


def of_kind(kinds: list[str], kind: str, first: int = 0) -> Layers:
    """The indexes of one kind."""
    return tuple(first + i for i, k in enumerate(kinds) if k == kind)


@family("nemotron_h")
def nemotron_h(parts: Parts) -> Shape:
    """Nemotron-H: each layer is a Mamba 2, an attention, an MLP or an expert block. Only attention keeps KV."""
    c = parts.config
    kinds = block_kinds(c, "hybrid_override_pattern", "layers_block_type")
    layers = c.optional_integer(*LAYERS, low=1, high=MAX_LAYERS)
    if not kinds:
        raise c.fail("config.json lacks hybrid_override_pattern (or layers_block_type)")
    if layers is not None and layers != len(kinds):
        raise c.fail(f"hybrid_override_pattern has {len(kinds)} blocks, num_hidden_layers is {layers}")
    parts.model = "backbone."
    shape = read_shape(c, layers=len(kinds))
    shape.heads = read_heads(c, shape.hidden)
    frame(parts, shape, STYLE)
    _blocks(parts, shape, "backbone.layers.{layer}.", kinds)
    attention_cache(parts, "full", shape.heads, of_kind(kinds, "attention"))
    _mtp(parts, shape)
    return shape


def _blocks(parts: Parts, shape: Shape, at: str, kinds: list[str]) -> None:
    """The sub-blocks and their norms."""
    c, hidden = parts.config, shape.hidden
    every = tuple(range(len(kinds)))
    parts.norm(f"{at}norm", hidden, layers=every)
    mamba = of_kind(kinds, "mamba")
    if mamba:
        mamba2(parts, f"{at}mixer.", hidden, read_mamba2(c, hidden), mamba)
    attention = of_kind(kinds, "attention")
    if attention and shape.heads:
        bias = c.boolean("attention_bias")
        projections(parts, f"{at}mixer.", hidden, shape.heads, attention, qkv_bias=bias, o_bias=bias)
    dense = of_kind(kinds, "mlp")
    if dense:
        shape.width = c.integer("intermediate_size")
        mlp(parts, f"{at}mixer.", hidden, shape.width, dense, names=PLAIN, bias=c.boolean("mlp_bias"))
    expert = of_kind(kinds, "moe")
    if expert:
        _moe(parts, shape, f"{at}mixer.", expert)


def _moe(parts: Parts, shape: Shape, at: str, layers: Layers) -> None:
    """Ungated experts, on a narrower (latent) vector where `moe_latent_size` says so."""
    c, hidden = parts.config, shape.hidden
    moe = read_moe(c, layers)
    shared = c.integer("moe_shared_expert_intermediate_size", default=0, low=0)
    shape.moe = moe = replace(moe, shared_width=shared * c.integer("n_shared_experts", default=1, low=0))
    latent = c.optional_integer("moe_latent_size", low=1)
    parts.linear("router", f"{at}gate", moe.experts, hidden, layers=layers)
    mlp(
        parts,
        f"{at}experts.{{expert}}.",
        latent or hidden,
        moe.width,
        layers,
        names=PLAIN,
        component="experts",
        copies=moe.experts,
    )
    if moe.shared_width:
        mlp(parts, f"{at}shared_experts.", hidden, moe.shared_width, layers, names=PLAIN)
    if latent:
        parts.linear("mlp", f"{at}fc1_latent_proj", latent, hidden, layers=layers)
        parts.linear("mlp", f"{at}fc2_latent_proj", hidden, latent, layers=layers)


def _mtp(parts: Parts, shape: Shape) -> None:
    """The stored prediction head: the blocks of `mtp_hybrid_override_pattern`, a 2h × h projection, three norms."""
    c, hidden = parts.config, shape.hidden
    count = c.integer("num_nextn_predict_layers", default=0, low=0, high=MAX_LAYERS)
    kinds = block_kinds(c, "mtp_hybrid_override_pattern", "mtp_layers_block_type") if count else []
    if not kinds:
        return
    since, states, own = len(parts.tensors), len(parts.caches), shape.moe
    _blocks(parts, shape, "mtp.layers.{layer}.", kinds * count)
    firsts = tuple(range(0, len(kinds) * count, len(kinds)))
    parts.linear("mtp", "mtp.layers.{layer}.eh_proj", hidden, 2 * hidden, layers=firsts)
    for name in ("enorm", "hnorm", "final_layernorm"):
        parts.norm(f"mtp.layers.{{layer}}.{name}", hidden, layers=firsts)
    parts.as_mtp(since)
    del parts.caches[states:]
    shape.moe, shape.mtp_layers = own, count


@family("nemotron-nas", "deci")
def nemotron_nas(parts: Parts) -> Shape:
    """Nemotron-NAS (DeciLM): `block_configs` gives each layer's KV groups and MLP width, or leaves a part out."""
    c = parts.config
    shape = read_shape(c)
    blocks = c.items("block_configs", length=shape.layers) or []
    if not blocks:
        raise c.fail("config.json lacks block_configs")
    query = c.integer("num_attention_heads")
    dim = c.optional_integer("head_dim", low=1) or shape.hidden // query
    attention: dict[int, list[int]] = defaultdict(list)
    widths: dict[int, list[int]] = defaultdict(list)
    linear: dict[str, list[int]] = {"self_attn": [], "mlp": []}
    for i, block in enumerate(blocks):
        part, feed = _block_part(c, block, i, "attention"), _block_part(c, block, i, "ffn")
        if part.get("replace_with_linear"):
            linear["self_attn"].append(i)
        elif not part.get("no_op"):
            attention[query // _positive(c, part.get("n_heads_in_group"), f"block {i} n_heads_in_group")].append(i)
        if feed.get("replace_with_linear"):
            linear["mlp"].append(i)
        elif not feed.get("no_op"):
            widths[ffn_width(_multiplier(c, feed.get("ffn_mult"), i), shape.hidden)].append(i)
    frame(parts, shape, Style())
    at, bias = f"{parts.model}layers.{{layer}}.", c.boolean("attention_bias")
    for kv, where in sorted(attention.items()):
        heads = Heads(query=query, kv=kv, key_dim=dim, value_dim=dim)
        shape.heads = shape.heads or heads
        projections(parts, f"{at}self_attn.", shape.hidden, heads, tuple(where), qkv_bias=bias, o_bias=bias)
        attention_cache(parts, "full", heads, tuple(where))
    for width, where in sorted(widths.items()):
        mlp(parts, f"{at}mlp.", shape.hidden, width, tuple(where), bias=c.boolean("mlp_bias"))
        shape.width = width
    for name, where in linear.items():
        parts.linear(
            "mlp",
            f"{at}{name}.linear_attn" if name == "self_attn" else f"{at}{name}.linear_mlp",
            shape.hidden,
            shape.hidden,
            layers=tuple(where),
        )
    _nas_norms(parts, shape, attention, widths, linear)
    return shape


def _nas_norms(
    parts: Parts,
    shape: Shape,
    attention: dict[int, list[int]],
    widths: dict[int, list[int]],
    linear: dict[str, list[int]],
) -> None:
    """A norm stands only before a part that exists."""
    before = sorted(i for where in attention.values() for i in where) + linear["self_attn"]
    after = sorted(i for where in widths.values() for i in where) + linear["mlp"]
    for name, where in (("input_layernorm", before), ("post_attention_layernorm", after)):
        parts.norm(f"{parts.model}layers.{{layer}}.{name}", shape.hidden, layers=tuple(sorted(where)))


def ffn_width(mult: float, hidden: int) -> int:
    """2/3 of mult × hidden, rounded up to 256 (DeciLM's ffn_mult)."""
    width = int(2 * mult * hidden / 3)
    return -(-width // 256) * 256


def _block_part(c: Config, block: object, index: int, name: str) -> dict[str, object]:
    part = block.get(name) if isinstance(block, dict) else None
    if not isinstance(part, dict):
        raise c.fail(f"block_configs[{index}] has no {name}")
    return part


def _multiplier(c: Config, value: object, index: int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1_000:
        raise c.fail(f"block_configs[{index}] ffn_mult is {value!r}, not a positive number")
    return float(value)


def _positive(c: Config, value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise c.fail(f"{what} is {value!r}, not a positive number")
    return value
