"""MLX's memory: weights + KV cache + the activations of one prefill step, within the memory the GPU may address.

A cache grows with the sequence by whole steps and is never reserved ahead, so what is taken is what one user needs.
Source: mlx-lm (models/cache.py, generate.py); its numbers are the table `mlx_rule`.
"""

from collections.abc import Mapping

import polars as pl

from fitmart.estimator.engines.grid_sums import UNSTATED_CONTEXT, distinct, longest_context, usable_memory
from fitmart.estimator.errors import FitmartError
from fitmart.estimator.frames import ENGINE_MEMORY_SCHEMA, conform, schema

RULE_SCHEMA = schema(parameter=pl.String, name=pl.String, value=pl.Float64)

_HALF = 2  # bytes of an activation
_LAYER_ROWS = 4  # hidden-wide rows alive in attention
_FEED_ROWS = 3  # and in the feed-forward
_STATE_BYTES = 4  # gated delta and SSM states are F32
_STATES = ("linear_state",)
_ASKED = ("model_id", "kv_cache_dtype", "context_tokens", "weights_bytes", "budget_bytes")
_NOT_OURS = ("cuda_graph_bytes", "compute_buffer_bytes", "kv_tokens", "engine_version_used")


class MlxRuleError(FitmartError):
    """The table `mlx_rule` is missing."""


def mlx_memory(
    deployments: pl.DataFrame,
    models: pl.DataFrame,
    caches: pl.DataFrame,
    shards: pl.DataFrame,
    rules: Mapping[str, pl.DataFrame],
) -> pl.DataFrame:
    """ENGINE_MEMORY_SCHEMA, one row for each of `deployments`, by `row`.

    deployments: DEPLOYMENT_SCHEMA and of the GPU memory_bytes, is_unified_memory, addressable_share. shards: row,
    weights_bytes. rules: the seed `mlx_rule` by name. One machine: more than one GPU is `unsupported`, and so are a
    mixed pair of KV types and a quantized cache for a model with sliding windows.

    activation_bytes is the widest moment of a prefill step; non_torch_bytes the process's own share.
    """
    if "mlx_rule" not in rules:
        raise MlxRuleError("no rule table mlx_rule (warehouse/seeds)")
    table = conform(rules["mlx_rule"], RULE_SCHEMA, stage="mlx_rule")
    rows = deployments.join(shards.select("row", "weights_bytes"), on="row", how="left", validate="1:1").with_columns(
        budget_bytes=usable_memory(deployments)
    )
    asked, rows = distinct(rows, _ASKED, name="setting")
    sized = _with_growth(asked, models, caches, table)

    def kv(context: pl.Expr) -> pl.Expr:
        return _kv_bytes(context, _value(table, "cache_step"))

    def activation(context: pl.Expr) -> pl.Expr:
        return _activation_bytes(context, _value(table, "prefill_tokens"))

    low, own, high = (_value(table, "process_bytes", name) for name in ("low", "value", "high"))

    def needed(context: pl.Expr) -> pl.Expr:
        return pl.col("weights_bytes") + kv(context) + activation(context) + own

    step = pl.lit(_value(table, "cache_step"), pl.Int64)
    fitted = longest_context(sized, needed, step=step, limit=pl.col("context_limit")).with_columns(
        sequence_kv_bytes=kv(pl.col("context")), activation_bytes=activation(pl.col("context"))
    )
    # lazy evaluation frees much of a step early; up to 0.28 the last chunk of a prompt made logits of all its tokens
    freed = pl.col("activation_bytes") // 2
    chunk_logits = _HALF * pl.min_horizontal(pl.col("context"), _value(table, "prefill_tokens")) * pl.col("vocab_size")
    below, above = freed + own - low, chunk_logits + high - own
    available = pl.col("budget_bytes") - pl.col("weights_bytes") - pl.col("activation_bytes") - own
    required = needed(pl.col("context"))
    answers = fitted.with_columns(
        non_torch_bytes=pl.lit(own, pl.Int64),
        kv_available_bytes=available,
        kv_available_bytes_low=available - above,
        kv_available_bytes_high=available + below,
        kv_block_bytes=pl.lit(1, pl.Int64),
        kv_cache_bytes="sequence_kv_bytes",
        users=pl.when(pl.col("sequence_kv_bytes") > 0)
        .then((available // pl.col("sequence_kv_bytes")).clip(0))
        .when(available.is_not_null())
        .then((available >= 0).cast(pl.Int64)),
        required_bytes=required,
        required_bytes_low=required - below,
        required_bytes_high=required + above,
        taken_bytes=required,
    )
    out = rows.drop("weights_bytes", "budget_bytes", "context_tokens", "kv_cache_dtype").join(
        answers, on="setting", how="left", validate="m:1"
    )
    return conform(
        out.with_columns(limited_by=_limited_by()).with_columns(
            pl.lit(None, ENGINE_MEMORY_SCHEMA[name]).alias(name) for name in _NOT_OURS
        ),
        ENGINE_MEMORY_SCHEMA,
        stage="mlx_memory",
    )


def _value(table: pl.DataFrame, parameter: str, name: str | None = None) -> int:
    found = table.filter(pl.col("parameter") == parameter, pl.col("name").eq_missing(pl.lit(name)))["value"]
    if found.is_empty():
        raise MlxRuleError(f"mlx_rule: no {parameter} {name or ''}".rstrip())
    return int(found[0])


def _names(table: pl.DataFrame, parameter: str, value: str) -> pl.DataFrame:
    return table.filter(pl.col("parameter") == parameter).select("name", pl.col("value").alias(value))


def _with_growth(asked: pl.DataFrame, models: pl.DataFrame, caches: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """`asked` with context, context_limit, and what a sequence keeps.

    full_bytes, window_bytes (a token), window, state_bytes (a sequence); for the activations step_floats (a token) and
    score_heads (heads whose score matrix is made, 0 where the kernel is fused); is_refused.
    """
    pair = pl.col("kv_cache_dtype").fill_null("auto").str.to_lowercase().str.split("/")
    widths = _widths(models, caches, table)
    bits = _names(table, "cache_bits", "bits")
    rows = asked.with_columns(name=pair.list.first(), is_mixed=pair.list.first() != pair.list.last())
    rows = rows.join(bits, on="name", how="left", validate="m:1").join(
        widths, on="model_id", how="left", validate="m:1"
    )
    is_quantized = pl.col("bits") < 8 * _HALF
    return rows.with_columns(
        context=pl.coalesce("context_tokens", "max_context_tokens", pl.lit(UNSTATED_CONTEXT)),
        full_bytes=pl.col("full_elements") * pl.col("bits") / 8,
        window_bytes=pl.col("window_elements") * _HALF,
        is_refused=pl.col("bits").is_null() | pl.col("is_mixed") | (is_quantized & (pl.col("window_elements") > 0)),
    )


def _widths(models: pl.DataFrame, caches: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """One row a model: elements of all layers together, and the widths of its activations."""
    hidden, heads = pl.col("hidden_size"), pl.col("attention_heads").fill_null(0)
    facts = (
        models.join(
            _names(table, "ignores_window", "is_whole").rename({"name": "model_type"}), on="model_type", how="left"
        )
        .join(
            _names(table, "expanded_head_elements", "expanded").rename({"name": "model_type"}),
            on="model_type",
            how="left",
        )
        .with_columns(is_whole=pl.col("is_whole").is_not_null(), expanded=(pl.col("expanded") * heads).cast(pl.Int64))
    )
    kept = caches.filter(pl.col("kind") != "cross").join(
        facts.select("model_id", "is_whole", "expanded"), on="model_id"
    )
    is_window = pl.col("window_tokens").is_not_null() & ~pl.col("is_whole")
    elements = pl.when(pl.col("kind") == "mla").then(pl.coalesce("expanded", "elements_per_token"))
    a_token = elements.otherwise("elements_per_token") * pl.col("layer_count") / pl.col("tokens_per_entry")
    state = pl.when(pl.col("kind").is_in(_STATES)).then(_STATE_BYTES).otherwise(_HALF)
    growth = kept.group_by("model_id").agg(
        full_elements=a_token.filter(~is_window).sum(),
        window_elements=a_token.filter(is_window).sum(),
        window=pl.col("window_tokens").filter(is_window).max(),
        state_bytes=(pl.col("fixed_elements") * pl.col("layer_count") * state).sum(),
    )
    fused = table.filter(pl.col("parameter") == "fused_head_dim")["name"].cast(pl.Int64).to_list()
    is_fused = pl.col("head_dim").is_in(fused) & (pl.col("attention_kind") != "mla")
    expert = pl.coalesce("expert_intermediate_size", pl.lit(0))
    routed = pl.col("experts_per_token").fill_null(0) * pl.max_horizontal(2 * expert, expert + hidden)
    feed = pl.max_horizontal(2 * pl.col("intermediate_size").fill_null(0), routed) + _FEED_ROWS * hidden
    return facts.join(growth, on="model_id", how="left", validate="1:1").select(
        "model_id",
        "max_context_tokens",
        "vocab_size",
        pl.col("full_elements", "window_elements").fill_null(0.0),
        "window",
        pl.col("state_bytes").fill_null(0),
        context_limit=pl.coalesce("extended_context_tokens", "max_context_tokens"),
        step_floats=pl.max_horizontal(feed, _LAYER_ROWS * hidden),
        score_heads=pl.when(is_fused).then(0).otherwise(heads),
    )


def _kv_bytes(context: pl.Expr, step: int) -> pl.Expr:
    """One sequence's caches and states [Int64]: whole steps, windows at most their size."""
    whole = (context + step - 1) // step * step
    window = pl.min_horizontal(whole, pl.col("window").fill_null(0))
    total = whole * pl.col("full_bytes") + window * pl.col("window_bytes") + pl.col("state_bytes")
    return total.ceil().cast(pl.Int64)


def _activation_bytes(context: pl.Expr, prefill: int) -> pl.Expr:
    """A prefill step's widest layer, and its score matrix where the attention kernel is not fused [Int64]."""
    tokens = pl.min_horizontal(context, pl.lit(prefill, pl.Int64))
    return (tokens * _HALF * (pl.col("step_floats") + pl.col("score_heads") * context)).cast(pl.Int64)


def _limited_by() -> pl.Expr:
    return (
        pl.when(pl.col("is_refused") | (pl.col("gpu_count") > 1))
        .then(pl.lit("unsupported"))
        .when(pl.col("kv_available_bytes_high") <= 0)
        .then(pl.lit("weights"))
        .when(pl.col("context") > pl.col("context_limit"))
        .then(pl.lit("context"))
        .when(pl.col("sequence_kv_bytes") > pl.col("kv_available_bytes_high"))
        .then(pl.lit("kv_cache"))
        .when(pl.col("kv_available_bytes_high").is_null())
        .then(pl.lit("unknown"))
        .otherwise(pl.lit(None, pl.String))
    )
