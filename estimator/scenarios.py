"""The scenarios contract: rows of text in, deployments for the estimator, rows of text out, in the same order.

One row in is one row out. What cannot be read or estimated keeps its row, with the reason in `error`.
"""

from typing import Literal

import polars as pl

from fitmart.estimator.frames import DEPLOYMENT_SCHEMA, conform
from fitmart.estimator.kv_cache import KV_ALIASES, KV_PRECISIONS

Kind = Literal["text", "integer", "number", "flag"]

# Input columns in the order of the contract. `model_id` and `precision` are required, a blank is the engine's default.
INPUT: dict[str, Kind] = {
    "scenario_id": "text",
    "model_id": "text",
    "precision": "text",
    "engine": "text",
    "engine_version": "text",
    "engine_core": "text",
    "usage": "text",
    "gpu_id": "text",
    "gpu_name": "text",
    "gpu_memory_bytes": "integer",
    "gpu_count": "integer",
    "tensor_parallel": "integer",
    "pipeline_parallel": "integer",
    "data_parallel": "integer",
    "max_model_len": "integer",
    "gpu_memory_utilization": "number",
    "max_num_batched_tokens": "integer",
    "max_num_seqs": "integer",
    "kv_cache_dtype": "text",
    "enforce_eager": "flag",
    "flash_attention": "flag",
    "n_ubatch": "integer",
    "n_parallel": "integer",
    "n_gpu_layers": "integer",
    "n_cpu_moe": "integer",
    "imatrix": "flag",
    "speculative": "text",
    "concurrency": "integer",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "cached_tokens": "integer",
    "method": "text",
    "lora_rank": "integer",
    "optimizer": "text",
    "sequence_tokens": "integer",
    "batch": "integer",
    "is_checkpointed": "flag",
}

# Output columns after the input's own.
OUTPUT = (
    "engine_version_used",
    "params_total",
    "params_active",
    "stored_params",
    "weights_total_bytes",
    "file_bytes",
    "file_bytes_low",
    "file_bytes_high",
    "weights_bytes",
    "activation_bytes",
    "non_torch_bytes",
    "cuda_graph_bytes",
    "kv_available_bytes",
    "kv_available_bytes_low",
    "kv_available_bytes_high",
    "kv_tokens",
    "kv_minimum_bytes",
    "kv_cache_bytes",
    "compute_buffer_bytes",
    "required_bytes",
    "required_bytes_low",
    "required_bytes_high",
    "taken_bytes",
    "users",
    "fit_context_tokens",
    "verdict",
    "limited_by",
    "decode_tokens_per_s",
    "decode_tokens_per_s_low",
    "decode_tokens_per_s_high",
    "prefill_tokens_per_s",
    "prefill_tokens_per_s_low",
    "prefill_tokens_per_s_high",
    "ttft_ms",
    "ttft_ms_low",
    "ttft_ms_high",
    "throughput_tokens_per_s",
    "throughput_tokens_per_s_low",
    "throughput_tokens_per_s_high",
    "finetune_bytes",
    "finetune_weights_bytes",
    "finetune_gradients_bytes",
    "finetune_optimizer_bytes",
    "finetune_adapter_bytes",
    "finetune_activation_bytes",
    "finetune_logits_bytes",
    "finetune_overhead_bytes",
    "error",
)

# Beyond these no machine and no request is meant: refused, so that no sum of bytes leaves 64 bits.
_MOST_GPUS = 1024
_MOST_TOKENS = 2**28
_LARGEST = {
    "gpu_memory_bytes": 2**50,
    "gpu_memory_utilization": 1,
    **dict.fromkeys(("gpu_count", "tensor_parallel", "pipeline_parallel", "data_parallel"), _MOST_GPUS),
    **dict.fromkeys(("max_model_len", "max_num_batched_tokens", "n_ubatch"), _MOST_TOKENS),
    **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens"), _MOST_TOKENS),
    "sequence_tokens": 2**24,  # training keeps megabytes of each token
    "batch": 2**10,
}
_LARGEST_COUNT = 2**16  # sequences, slots, layers, ranks
_ENGINES = ("vllm", "llama.cpp", "sglang", "tensorrt-llm", "mlx")
_ONE_OF = {
    "engine": _ENGINES,
    "engine_core": ("v0", "v1"),
    "usage": ("server", "offline"),
    "method": ("full", "lora", "qlora"),
}
# The scenario's name → the deployment's, where they differ.
_RENAMED = {
    "precision": "precision_id",
    "engine": "engine_id",
    "gpu_memory_bytes": "device_memory_bytes",
    "max_model_len": "context_tokens",
}
# Engines that give each GPU whole layers, or have one GPU: their GPUs are counted, not multiplied.
_LAYER_SPLIT = ("llama.cpp", "mlx")
# Precisions of a checkpoint → the same numbers in the file that the engine reads.
_OWN_FILES = {
    "llama.cpp": {"fp32": "gguf-f32", "bf16": "gguf-bf16", "fp16": "gguf-f16"},
    "mlx": {"bf16": "mlx-bf16", "fp16": "mlx-bf16"},
}
_MAY_BE_ZERO = {"n_gpu_layers", "n_cpu_moe", "cached_tokens", "input_tokens", "output_tokens"}


def _problem(name: str, text: pl.Expr, ok: pl.Expr, what: str) -> pl.Expr:
    """Null where `text` is blank or fine, else `name: what: 'text'`."""
    return (
        pl.when(text.is_not_null() & ~ok.fill_null(value=False))
        .then(pl.format("{}: {}: '{}'", pl.lit(name), pl.lit(what), text.str.slice(0, 40)))
        .otherwise(None)
    )


def _kv_precision(text: pl.Expr) -> pl.Expr:
    """A KV precision id, or `K/V` where keys and values differ; null where the word is no such thing, or `auto`."""
    ids = dict(zip(KV_PRECISIONS, KV_PRECISIONS, strict=True)) | KV_ALIASES
    words = text.str.to_lowercase().str.split("/")
    key, value = (
        w.replace_strict(ids, default=None, return_dtype=pl.String) for w in (words.list.first(), words.list.last())
    )
    return pl.when((words.list.len() <= 2) & key.is_not_null() & value.is_not_null()).then(
        pl.when(key == value).then(key).otherwise(pl.concat_str(key, value, separator="/"))
    )


def _read(name: str, kind: Kind) -> tuple[pl.Expr, pl.Expr]:
    """(typed value, problem) of one text column."""
    text = pl.col(name)
    if name == "kv_cache_dtype":
        value = _kv_precision(text)
        is_default = text.str.to_lowercase() == "auto"
        return value, _problem(name, text, is_default | value.is_not_null(), f"not one of {', '.join(KV_PRECISIONS)}")
    if kind == "text":
        if name in _ONE_OF:
            words = _ONE_OF[name]
            return text.str.to_lowercase(), _problem(
                name, text, text.str.to_lowercase().is_in(words), f"not one of {', '.join(words)}"
            )
        return text, pl.lit(None, pl.String)
    if kind == "flag":
        word = text.str.to_lowercase()
        value = word.replace_strict(
            {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}, default=None
        )
        return value, _problem(name, text, value.is_not_null(), "not true or false")
    number = text.cast(pl.Float64, strict=False)
    least = 0 if name in _MAY_BE_ZERO else 1e-9
    if name == "n_gpu_layers":
        least = -1  # llama.cpp's own word for all layers
    inside = number.is_finite() & (number >= least) & (number <= _LARGEST.get(name, _LARGEST_COUNT))
    if kind == "number":
        return number, _problem(name, text, inside, "not a number in range")
    value = number.cast(pl.Int64, strict=False)
    return value, _problem(name, text, inside & (number == number.floor()), "not a whole number in range")


def read_scenarios(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of text → typed rows: the columns of INPUT, `row` (position) and `error` (null where all could be read).

    Blank cells are null. Columns that the contract does not know are ignored, those that are absent are null.
    """
    blank = rows.select(
        (
            pl.col(c).cast(pl.String).str.strip_chars().replace({"": None})
            if c in rows.columns
            else pl.lit(None, pl.String)
        ).alias(c)
        for c in INPUT
    )
    read = {name: _read(name, kind) for name, kind in INPUT.items()}
    required = [
        pl.when(pl.col(c).is_null()).then(pl.lit(f"{c}: is required")).otherwise(None)
        for c in ("model_id", "precision")
    ]
    typed = blank.select(
        [value.alias(name) for name, (value, _) in read.items()]
        + [pl.coalesce([*required, *(problem for _, problem in read.values())]).alias("error")]
    )
    return typed.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))


def with_defaults(scenarios: pl.DataFrame, precisions: pl.DataFrame) -> pl.DataFrame:
    """Fill what the engine leaves to arithmetic: the precision's engine, and GPUs from the parallel sizes or back.

    `gpu_count` = tensor × pipeline × data parallel; with only a count given, all of it is tensor parallel. GPUs beyond
    that product stay idle and are not counted; fewer than it are an `error`. Engines that split by layers have no such
    sizes. A plain dtype is the engine's own file of that dtype (`bf16` under llama.cpp: `gguf-bf16`).
    """
    engine = precisions.select(precision="precision_id", default_engine="engine_id")
    sizes = [pl.col(c).fill_null(1) for c in ("pipeline_parallel", "data_parallel")]
    others = sizes[0] * sizes[1]
    filled = scenarios.with_columns(pl.col("precision", "gpu_id").str.to_lowercase()).join(
        engine, on="precision", how="left", maintain_order="left", validate="m:1"
    )
    filled = filled.with_columns(
        engine=pl.coalesce("engine", "default_engine", pl.lit("vllm")),
        tensor_parallel=pl.coalesce("tensor_parallel", (pl.col("gpu_count") // others).clip(1), pl.lit(1, pl.Int64)),
        pipeline_parallel=sizes[0],
        data_parallel=sizes[1],
    ).drop("default_engine")
    ranks = pl.col("tensor_parallel") * others
    is_split = ~pl.col("engine").is_in(_LAYER_SPLIT)
    most = pl.min_horizontal(pl.when(is_split).then("gpu_count").fill_null(_MOST_GPUS), pl.lit(_MOST_GPUS))
    too_few = pl.when(ranks > most).then(
        pl.format("gpu_count: {} GPUs for {} of tensor × pipeline × data parallel", most, ranks)
    )
    return filled.with_columns(
        error=pl.coalesce("error", too_few),
        gpu_count=pl.when(is_split).then(ranks).otherwise(pl.coalesce("gpu_count", ranks)),
        precision=pl.coalesce(*(_own_file(*pair) for pair in _OWN_FILES.items()), "precision"),
    )


def _own_file(engine: str, own: dict[str, str]) -> pl.Expr:
    return pl.when(pl.col("engine") == engine).then(pl.col("precision").replace_strict(own, default=None))


def to_deployments(scenarios: pl.DataFrame) -> pl.DataFrame:
    """Typed scenarios → DEPLOYMENT_SCHEMA."""
    return conform(scenarios.rename(_RENAMED), DEPLOYMENT_SCHEMA, stage="scenarios")


def to_answers(original: pl.DataFrame, scenarios: pl.DataFrame, results: pl.DataFrame) -> pl.DataFrame:
    """The user's own columns, then OUTPUT; a figure that this build does not give is blank.

    `results` is keyed by `row`; its `error` yields to one found while reading.
    """
    answers = scenarios.select("row", read_error="error").join(results, on="row", how="left", maintain_order="left")
    answers = answers.with_columns(
        error=pl.coalesce("read_error", "error" if "error" in results.columns else pl.lit(None, pl.String))
    )
    failed = pl.col("error").is_not_null()
    known = [c for c in OUTPUT if c != "error"]
    figures = answers.select(
        *(
            (pl.when(~failed).then(pl.col(c)) if c in answers.columns else pl.lit(None, pl.String)).alias(c)
            for c in known
        ),
        "error",
    )
    return pl.concat([original.select(c for c in original.columns if c not in OUTPUT), figures], how="horizontal")
