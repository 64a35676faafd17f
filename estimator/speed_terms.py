"""The times that a decode step and a prefill are made of: each a quantity over a data-sheet rate, or a count.

A step or a prefill takes Σ factor × term seconds. The terms are physics, written here once; the factors are measured
(warehouse/seeds/speed_coefficient.csv, fitted by tests/accuracy/fit_speed.py with these same expressions).
"""

from functools import reduce
from operator import add

import polars as pl

from fitmart.estimator.workload import LAYER_SPLIT_ENGINES

# Ratios to the data sheet (1 / efficiency), except L, Lo, Lm, B and ar, which are seconds.
TERMS = {
    "w16": "16-bit weights read, at memory bandwidth",
    "w8": "8-bit weights read",
    "w4": "4-bit (and smaller) weights read",
    "kv": "KV caches and states read, at memory bandwidth",
    "kvq": "the same caches read again by the other query heads of a group (servers on NVIDIA)",
    "fl": "operations of a decode step, at the peak rate",
    "pf16": "operations of a prompt in 16-bit matrices, at the peak rate",
    "pfq": "operations of a prompt in quantized matrices",
    "pfm": "operations of a prompt in routed experts, tiles padded",
    "pfa": "operations of attention in a prompt",
    "pfs": "attention scores of a prompt written out, at memory bandwidth (old llama.cpp)",
    "pfd": "weights expanded to 16 bits for each chunk of a prompt, at memory bandwidth (old llama.cpp)",
    "pfx": "activations of a prompt between kernels, at memory bandwidth",
    "L": "launches of one layer",
    "Lo": "the same, on top, in old llama.cpp",
    "Lm": "routing of one layer of experts",
    "B": "scheduling and sampling of one sequence in one step",
    "ar": "start of the exchanges of one layer between GPUs",
    "arb": "activations of a step exchanged between GPUs, at the rate of their link",
    "arp": "activations of a prompt exchanged: long messages, which the link takes faster",
}
# Fixed, not fitted.
HOST_BYTES_PER_S = 60e9  # dual-channel DDR5: what kept-back layers and experts are read at; an assumption
EXPERT_TILE_TOKENS = 32  # tokens of one expert that a matrix kernel handles at once, however few there are
SCORE_BYTES = 16.0  # one float32 score written, read for the softmax, written and read again
ACTIVATION_BYTES = 100.0  # an element of the hidden state, over the unfused kernels of one layer
PIPELINE_SHARE = 0.85  # of a prompt's work that several GPUs with some layers each do at once

HOST = "host"  # weights read from the host's memory, a term without a factor

Terms = dict[str, pl.Expr]
_NONE = pl.lit(0.0)


def _rate() -> pl.Expr:
    return pl.col("bandwidth_bytes_per_s") * pl.col("gpus")


def _peak() -> pl.Expr:
    return pl.col("peak_flop_per_s") * pl.col("gpus")


def experts_touched(tokens: pl.Expr) -> pl.Expr:
    """Share of the experts that `tokens` tokens reach, each routed independently: 1 - (1 - k / n)^tokens."""
    share = pl.col("experts_per_token") / pl.col("experts")
    return pl.when(pl.col("experts") > 0).then(1 - (1 - share).pow(tokens)).otherwise(1.0)


def _weights(tokens: pl.Expr) -> Terms:
    """Weights that a pass of `tokens` tokens reads."""
    return _reads(pl.col("dense_bytes"), pl.col("expert_bytes") * experts_touched(tokens))


def expert_terms() -> Terms:
    """Terms of reading every routed expert once: a step of many tokens comes near to it."""
    return _reads(_NONE, pl.col("expert_bytes"))


def pass_terms() -> Terms:
    """Terms of one pass over all weights, whatever the tokens: what a prompt takes beyond its share of a longer one."""
    tile = {"pfm": 2.0 * pl.col("expert_params") * EXPERT_TILE_TOKENS / _peak()}
    return _reads(pl.col("dense_bytes"), pl.col("expert_bytes")) | _launches() | tile


def _reads(dense: pl.Expr, experts: pl.Expr) -> Terms:
    """Bytes of weights read; those in the host's memory at its rate."""
    at_home = dense * (1 - pl.col("host_share")) + experts * (1 - pl.col("host_expert_share"))
    away = dense * pl.col("host_share") + experts * pl.col("host_expert_share")
    seconds, bits = at_home / _rate(), pl.col("weight_bits")
    return {f"w{b}": pl.when(bits == b).then(seconds).otherwise(_NONE) for b in (16, 8, 4)} | {
        HOST: away / HOST_BYTES_PER_S
    }


def _is_old_llamacpp() -> pl.Expr:
    return (pl.col("engine_id") == "llama.cpp") & (pl.col("era") == "old")


def _is_cuda_server() -> pl.Expr:
    return ~pl.col("engine_id").is_in(LAYER_SPLIT_ENGINES) & pl.col("device_class").str.starts_with("nvidia")


def _launches() -> Terms:
    blocks = pl.col("blocks")
    return {
        "L": blocks,
        "Lo": pl.when(_is_old_llamacpp()).then(blocks).otherwise(_NONE),
        "Lm": pl.col("moe_blocks").cast(pl.Float64),
        "ar": pl.when(pl.col("gpus") > 1).then(blocks).otherwise(_NONE),
    }


def _exchange(tokens: pl.Expr) -> pl.Expr:
    """Seconds for the activations of `tokens` tokens to cross between n GPUs, at the rate of their link.

    Two all-reduces a layer, in 16 bit, each of which moves 2 (n - 1) / n of its size.
    """
    gpus = pl.col("gpus")
    crossing = 8.0 * (gpus - 1) / gpus * tokens * pl.col("hidden_size") * pl.col("blocks")
    return crossing / pl.col("link_bytes_per_s")


def decode_terms(batch: pl.Expr) -> Terms:
    """Terms of one step that gives each of `batch` sequences one token."""
    active = pl.col("expert_params") * (pl.col("experts_per_token") / pl.col("experts")).fill_nan(1.0)
    touched = pl.col("dense_params") + pl.col("head_params") + active
    caches = batch * pl.col("kv_read_bytes") / (pl.col("bandwidth_bytes_per_s") * pl.col("kv_gpus"))
    again = pl.when(_is_cuda_server()).then(caches * (pl.col("heads_per_kv_head") - 1)).otherwise(_NONE)
    return (
        _weights(batch)
        | _launches()
        | {"kv": caches, "kvq": again, "fl": 2.0 * touched * batch / _peak(), "B": batch, "arb": _exchange(batch)}
    )


def prefill_terms(sequences: pl.Expr) -> Terms:
    """Terms of taking in the prompts (`input_tokens`) of `sequences` sequences, in chunks."""
    tokens = pl.col("input_tokens") * sequences
    chunks = (tokens / pl.col("chunk_tokens")).ceil()
    in_chunk = tokens / chunks.clip(1)  # no prompt has no chunks
    bits, is_old = pl.col("weight_bits"), _is_old_llamacpp()
    dense = 2.0 * pl.col("dense_params") * tokens / _peak()
    expands = is_old & (pl.col("device_class").str.starts_with("nvidia"))
    is_float = (bits == 16) | expands
    touched = experts_touched(in_chunk)
    per_expert = in_chunk * (pl.col("experts_per_token") / pl.col("experts")).fill_nan(1.0)
    padded = pl.max_horizontal(per_expert, touched * EXPERT_TILE_TOKENS)
    expanded = pl.col("dense_params") + pl.col("expert_params") * touched
    once: Terms = {
        "pf16": pl.when(is_float).then(dense).otherwise(_NONE),
        "pfq": pl.when(is_float).then(_NONE).otherwise(dense),
        "pfm": 2.0 * pl.col("expert_params") * padded * chunks / _peak(),
        "pfa": pl.when(is_old)
        .then(_NONE)
        .otherwise(pl.col("attention_flop") * sequences / (pl.col("attention_flop_per_s") * pl.col("gpus"))),
        "pfs": pl.when(is_old).then(SCORE_BYTES * pl.col("score_pairs") * sequences / _rate()).otherwise(_NONE),
        "pfd": pl.when(expands & (bits < 16)).then(4.0 * expanded * chunks / _rate()).otherwise(_NONE),
        "pfx": ACTIVATION_BYTES * tokens * pl.col("hidden_size") * pl.col("blocks") / _rate(),
        "arp": _exchange(tokens),
    }
    per_chunk = {name: chunks * each for name, each in (_weights(in_chunk) | _launches()).items()}
    stages = pl.col("stages")
    alone = 1 - PIPELINE_SHARE + PIPELINE_SHARE * (chunks + stages - 1) / (chunks.clip(1) * stages)
    return {name: seconds * alone for name, seconds in (once | per_chunk).items()}


def combine(first: Terms, second: Terms, times: pl.Expr) -> Terms:
    """`first` and `times` × `second`, term by term."""
    return {name: first.get(name, _NONE) + times * second.get(name, _NONE) for name in (*TERMS, HOST)}


def seconds(terms: Terms) -> pl.Expr:
    """Σ factor × term, the factors being columns; what lies in the host's memory has none."""
    return reduce(add, (each if name == HOST else each * pl.col(name) for name, each in terms.items()))
