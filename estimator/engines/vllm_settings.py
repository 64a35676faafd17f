"""vLLM's settings for a deployment: what was asked for, and the defaults of that version and device for the rest."""

import polars as pl

from fitmart.estimator.engines.versions import parse_version, version_key, version_text
from fitmart.estimator.engines.vllm_rules import VllmRules, scalar_rules

NEWEST_V0 = parse_version("0.10.2")  # 0.11.0 has no V0

# Sizes of one element in the KV cache [bytes]; vLLM's words. A word that is not here leaves the row unknown.
KV_ELEMENT_BYTES = {
    "bf16": 2.0,
    "bfloat16": 2.0,
    "f16": 2.0,
    "fp16": 2.0,
    "float16": 2.0,
    "f32": 4.0,
    "fp32": 4.0,
    "float32": 4.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "fp8_inc": 1.0,
    "int8": 1.0,
    "nvfp4": 0.5625,  # 4 bits and an 8-bit scale per 16 elements
}
_PLAIN = ("native", "bf16", "fp16", "fp32")
_EIGHT_BIT = r"^(fp8|int8)"  # precisions whose activations are 8-bit too
_POOLING_TASKS = ("feature-extraction", "sentence-similarity", "text-classification", "text-ranking", "fill-mask")
_MODEL_COLUMNS = (
    "architecture",
    "model_type",
    "task",
    "hidden_size",
    "vocab_size",
    "attention_heads",
    "kv_heads",
    "head_dim",
    "intermediate_size",
    "experts",
    "experts_per_token",
    "expert_intermediate_size",
    "kv_lora_rank",
    "max_context_tokens",
    "extended_context_tokens",
    "native_dtype",
    "native_precision",
    "quant_method",
    "kv_cache_scheme",
    "is_multimodal",
    "is_encoder",
    "mtp_layers",
)
_DEVICE = ("vendor", "gpu_name", "memory_bytes", "is_unified_memory", "version_key", "usage")


def with_settings(
    deployments: pl.DataFrame, models: pl.DataFrame, caches: pl.DataFrame, rules: VllmRules
) -> pl.DataFrame:
    """Deployments with every setting resolved, and the facts of their model beside.

    Adds version_key, engine_version_used, memory_bytes (total as torch sees it), budget_bytes, sequences
    (max_num_seqs), batch_tokens (max_num_batched_tokens), kv_element_bytes, draft_tokens, draft_layers, is_runner2,
    is_pooling, is_eight_bit (activations too), has_context (one was asked for), flight_tokens (in flight beside a
    sliding window), and one column per scalar rule; fills engine_core, usage, the parallel sizes, gpu_count and
    context_tokens. Row order is kept.
    """
    facts = models.select("model_id", *_MODEL_COLUMNS).with_columns(
        is_recurrent=_has_cache(caches, "linear_state", "conv_state"),
        is_crossed=_has_cache(caches, "cross"),
        is_pooling=pl.col("is_encoder") | pl.col("task").is_in(_POOLING_TASKS),
    )
    rows = deployments.join(facts, on="model_id", how="left", maintain_order="left", validate="m:1")
    rows = _with_core(_with_version(rows, rules), rules)
    rows = rows.join(scalar_rules(rules, rows), on=["version_key", "engine_core"], how="left", maintain_order="left")
    rows = _with_sizes(rows)
    rows = _with_kv_dtype(rows)
    rows = _with_batch(rows, rules)
    return _with_runner(rows, rules)


def _has_cache(caches: pl.DataFrame, *kinds: str) -> pl.Expr:
    """Whether a model keeps a cache of one of these kinds."""
    return pl.col("model_id").is_in(caches.filter(pl.col("kind").is_in(kinds))["model_id"].unique().implode())


def _with_version(rows: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """Blank and unreadable versions are the newest; those outside the known span take its ends (V0 ends before V1)."""
    newest = pl.when(pl.col("engine_core") == "v0").then(NEWEST_V0).otherwise(rules.newest)
    key = pl.min_horizontal(version_key(pl.col("engine_version")).fill_null(newest), newest).clip(rules.oldest)
    return rows.with_columns(version_key=key).with_columns(engine_version_used=version_text(pl.col("version_key")))


def _with_core(rows: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """V0 or V1: as asked for, else by version; old devices and recurrent models stayed on V0 for a while."""
    eras = scalar_rules(rules, rows.select("version_key").unique().with_columns(engine_core=pl.lit("v1")))
    names = ("is_v1", "v1_minimum_capability", "is_v1_recurrent")
    capability = pl.col("compute_capability").cast(pl.Float64, strict=False)
    is_v1 = (
        (pl.col("is_v1") > 0)
        & (capability.is_null() | (capability >= pl.col("v1_minimum_capability")))
        & (~pl.col("is_recurrent").fill_null(value=False) | (pl.col("is_v1_recurrent") > 0))
    )
    default = pl.when(is_v1).then(pl.lit("v1")).otherwise(pl.lit("v0"))
    return (
        rows.join(eras.select("version_key", *names), on="version_key", how="left", maintain_order="left")
        .with_columns(
            engine_core=pl.coalesce("engine_core", default),
            usage=pl.coalesce("usage", pl.lit("server")),
            capability=capability,
        )
        .drop(names)
    )


def _with_sizes(rows: pl.DataFrame) -> pl.DataFrame:
    """GPUs, memory, budget and context."""
    others = pl.col("pipeline_parallel").fill_null(1) * pl.col("data_parallel").fill_null(1)
    tensor = pl.coalesce("tensor_parallel", (pl.col("gpu_count") // others).clip(1), pl.lit(1, pl.Int64))
    share = pl.coalesce("gpu_memory_utilization", "default_utilization")
    memory = pl.coalesce("device_memory_bytes", "torch_memory_bytes")
    return (
        rows.rename({"gpu_memory_utilization_right": "default_utilization"})
        .with_columns(
            memory_bytes=memory,
            budget_bytes=(memory * share).ceil().cast(pl.Int64),
            tensor_parallel=tensor,
            pipeline_parallel=pl.col("pipeline_parallel").fill_null(1),
            data_parallel=pl.col("data_parallel").fill_null(1),
            gpu_count=pl.coalesce("gpu_count", tensor * others),
            has_context=pl.col("context_tokens").is_not_null(),
            # vLLM takes 2048 where a config names no length.
            context_tokens=pl.coalesce("context_tokens", "max_context_tokens", pl.lit(2048, pl.Int64)),
        )
        .drop("default_utilization")
    )


def _with_kv_dtype(rows: pl.DataFrame) -> pl.DataFrame:
    """Bytes of one cached element, and what speculation adds to the cache.

    `speculative`: `mtp` or `mtp:N` drafts N (1) tokens with the model's own layers, which cache like full attention;
    any other method (`ngram`, `ngram:N`, …) drafts N tokens without layers of this model.
    """
    asked = pl.col("kv_cache_dtype").str.to_lowercase().replace({"auto": None, "": None})
    scheme = pl.when(pl.col("kv_cache_scheme").is_not_null()).then(pl.lit("fp8"))
    is_wide = (pl.col("precision_id") == "fp32") | (
        (pl.col("precision_id") == "native") & (pl.col("native_dtype") == "fp32")
    )
    native = pl.when(is_wide).then(4.0).otherwise(2.0)
    word = pl.coalesce(asked, scheme)
    method = pl.col("speculative").str.to_lowercase().replace({"": None, "none": None, "false": None, "no": None})
    tokens = pl.coalesce(method.str.extract(r":(\d{1,3})$").cast(pl.Int64), pl.lit(1, pl.Int64))
    return rows.with_columns(
        kv_element_bytes=pl.when(word.is_null())
        .then(native)
        .otherwise(word.replace_strict(KV_ELEMENT_BYTES, default=None, return_dtype=pl.Float64)),
        draft_tokens=pl.when(method.is_null()).then(0).otherwise(tokens),
        draft_layers=pl.when(method.str.starts_with("mtp").fill_null(value=False))
        .then(pl.col("mtp_layers").fill_null(0))
        .otherwise(0),
    )


def _device_defaults(rows: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """`default_batch`, `default_seqs` of V1 for each distinct device, version and usage: the first rule that matches.

    NVML tells no memory size of NVIDIA's unified-memory devices, so they fall to the smallest tier.
    """
    devices = rows.select(_DEVICE).unique().with_row_index("device")
    table = rules.batches.rename({"usage": "rule_usage"}).with_row_index("rank")
    name = pl.col("gpu_name").fill_null("").str.to_lowercase()
    is_untold = pl.col("is_unified_memory").fill_null(value=False) & (pl.col("vendor") == "NVIDIA")
    size = pl.when(is_untold).then(0).otherwise(pl.col("memory_bytes"))
    matches = (
        (pl.col("since") <= pl.col("version_key"))
        & (pl.col("version_key") < pl.col("until"))
        & (size.fill_null(0) >= pl.col("min_memory_bytes").fill_null(0))
        & (pl.col("name_pattern").is_null() | name.str.contains(pl.col("name_pattern")))
        & (pl.col("name_excluded").is_null() | ~name.str.contains(pl.col("name_excluded")))
        & (pl.col("rule_usage").is_null() | (pl.col("rule_usage") == pl.col("usage")))
    )
    found = (
        devices.join(table, how="cross")
        .filter(matches)
        .group_by("device", "parameter")
        .agg(pl.col("value").sort_by("rank").first())
        .pivot(on="parameter", on_columns=["max_num_batched_tokens", "max_num_seqs"], index="device", values="value")
        .rename({"max_num_batched_tokens": "default_batch", "max_num_seqs": "default_seqs"})
    )
    return devices.join(found, on="device", how="left", validate="1:1").drop("device")


def _with_batch(rows: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """Sequences and batch: asked for, else the device's tier (V1) or the context (V0), each capped by the other.

    Without an asked context the longest that fits is wanted (`with_pool`), so V0's batch is its least.
    """
    is_v0 = pl.col("engine_core") == "v0"
    is_long = (pl.col("context_tokens") > pl.col("chunked_above_tokens")) & ~pl.col("is_multimodal").fill_null(
        value=False
    )
    v0_batch = (
        pl.when(is_long & ~pl.col("is_pooling"))
        .then(pl.col("chunked_batch_tokens"))
        .otherwise(
            pl.max_horizontal(
                pl.when("has_context").then("context_tokens").otherwise(0),
                "batch_floor_tokens",
                pl.when("is_multimodal").then("multimodal_batch_floor_tokens").otherwise(0),
                pl.when("is_pooling").then("pooling_batch_floor_tokens").otherwise(0),
            )
        )
        .cast(pl.Int64)
    )
    # A bidirectional encoder reads a whole sequence at once.
    v1_batch = (
        pl.when("is_encoder").then(pl.max_horizontal("default_batch", "context_tokens")).otherwise("default_batch")
    )
    devices = _device_defaults(rows, rules)
    rows = rows.join(devices, on=list(_DEVICE), how="left", nulls_equal=True, maintain_order="left").with_columns(
        default_seqs=pl.when(is_v0).then(pl.col("v0_sequences").cast(pl.Int64)).otherwise("default_seqs"),
        default_batch=pl.when(is_v0).then(v0_batch).otherwise(v1_batch),
    )
    sequences = pl.coalesce("max_num_seqs", "default_seqs")
    capped = pl.when(pl.col("is_batch_capped") > 0).then(
        pl.min_horizontal("default_batch", (sequences * pl.col("context_tokens")))
    )
    batch = pl.coalesce("max_num_batched_tokens", capped, "default_batch")
    return rows.with_columns(
        batch_tokens=batch, sequences=pl.coalesce("max_num_seqs", pl.min_horizontal(sequences, batch))
    ).drop("default_seqs", "default_batch")


def _with_runner(rows: pl.DataFrame, rules: VllmRules) -> pl.DataFrame:
    """Whether the second model runner serves the model, and so how many batches are in flight."""
    kinds = ["version_key", "engine_core", "architecture", "is_moe", "is_recurrent", "is_quantized"]
    rows = rows.with_columns(
        is_moe=pl.col("experts").fill_null(0) > 0,
        is_quantized=pl.col("quant_method").is_not_null() | ~pl.col("precision_id").is_in(_PLAIN),
        is_eight_bit=pl.when(pl.col("precision_id") == "native")
        .then("native_precision")
        .otherwise("precision_id")
        .str.contains(_EIGHT_BIT),
    )
    distinct = rows.select(kinds).unique()
    table = rules.runners.rename({"architecture": "rule_architecture"})
    allowed = (
        (pl.col("engine_core") == "v1")
        & (pl.col("since") <= pl.col("version_key"))
        & (pl.col("version_key") < pl.col("until"))
        & (pl.col("rule_architecture").is_null() | (pl.col("rule_architecture") == pl.col("architecture")))
        & (pl.col("is_moe_allowed") | ~pl.col("is_moe"))
        & (pl.col("is_recurrent_allowed") | ~pl.col("is_recurrent"))
        & (pl.col("is_quantized_allowed") | ~pl.col("is_quantized"))
    )
    second = distinct.join(table, how="cross").filter(allowed).select(kinds).unique()
    rows = rows.join(
        second.with_columns(is_runner2=pl.lit(value=True)),
        on=kinds,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    ).with_columns(pl.col("is_runner2").fill_null(value=False))
    stages = pl.col("pipeline_parallel")
    batches = (
        pl.when(pl.col("flight_batches") <= 1)
        .then(1)
        .when(stages > 1)
        .then(stages + pl.col("is_runner2").cast(pl.Int64))
        .otherwise(pl.col("flight_batches").cast(pl.Int64))
    )
    return rows.with_columns(flight_tokens=pl.col("batch_tokens") * batches)
