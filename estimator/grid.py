"""The default grid: every model at every precision on every released accelerator, a batch of models at a time."""

from dataclasses import dataclass

import polars as pl

from fitmart.estimator.cost import MIN_USER_TOKENS_PER_S
from fitmart.estimator.estimate import engine_memory, footprints, in_devices, judge, with_facts
from fitmart.estimator.finetune_grid import finetune_rows
from fitmart.estimator.frames import DEPLOYMENT_SCHEMA, conform
from fitmart.estimator.kv_cache import kv_minimum_bytes
from fitmart.estimator.reference import Models, Reference
from fitmart.estimator.request import with_request_speed
from fitmart.estimator.units import KIB
from fitmart.estimator.workload import INPUT_SHARE

CONTEXTS = tuple(k * KIB for k in (4, 8, 16, 32, 64, 128, 256, 1024))
GPU_COUNTS = (1, 2, 4, 8)
KV_PRECISIONS = ("bf16", "fp8", "q8_0", "q4_0")
KEY = ("model_id", "precision_id", "engine_id", "gpu_id", "gpu_count")
# An engine runs on what its makers build for; other pairs are no question and have no row.
_ENGINE_VENDORS = {"mlx": ("Apple",)}
# More sequences at once than servers take by default; and none that would get fewer tokens than a reader wants.
MAX_SERVED = 256


@dataclass(frozen=True, slots=True)
class Marts:
    """The mart rows of a batch of models, by table."""

    footprint: pl.DataFrame
    kv_cache: pl.DataFrame
    capacity: pl.DataFrame
    fit: pl.DataFrame
    speed: pl.DataFrame
    finetune: pl.DataFrame


def grid_precisions(models: pl.DataFrame, precisions: pl.DataFrame) -> pl.DataFrame:
    """model_id, precision_id: the precisions in the grid; `native` only where it is another than 16 bit.

    A repository that is itself a quantization of another has its native precision alone.
    """
    pairs = models.join(precisions.filter("is_in_grid"), how="cross")
    is_plain = pl.col("native_precision").is_in(["bf16", "fp16", "fp32"])
    is_native = pl.col("precision_id") == "native"
    return pairs.filter(is_native ^ is_plain).select("model_id", "precision_id", "engine_id")


def grid_devices(gpus: pl.DataFrame) -> pl.DataFrame:
    """gpu_id, vendor, gpu_count: every released accelerator in every count it is sold in."""
    counts = pl.DataFrame({"gpu_count": GPU_COUNTS}, schema={"gpu_count": pl.Int64})
    return (
        gpus.join(counts, how="cross")
        .filter(pl.col("gpu_count") <= pl.col("max_gpu_count"))
        .select("gpu_id", "vendor", "gpu_count")
    )


def grid_contexts(models: pl.DataFrame) -> pl.DataFrame:
    """model_id, context_tokens: CONTEXTS up to the model's extended context; its own limit where that is below them."""
    contexts = pl.DataFrame({"context_tokens": CONTEXTS}, schema={"context_tokens": pl.Int64})
    limit = pl.coalesce("extended_context_tokens", "max_context_tokens", pl.lit(CONTEXTS[0], pl.Int64))
    smallest = pl.min_horizontal(limit, pl.lit(CONTEXTS[0], pl.Int64))
    return (
        models.select("model_id", limit=limit, smallest=smallest)
        .join(contexts, how="cross")
        .with_columns(
            context_tokens=pl.when(pl.col("context_tokens") == CONTEXTS[0]).then("smallest").otherwise("context_tokens")
        )
        .filter(pl.col("context_tokens") <= pl.col("limit"))
        .select("model_id", "context_tokens")
    )


def on_devices(precisions: pl.DataFrame, gpus: pl.DataFrame) -> pl.DataFrame:
    """Rows of model_id, precision_id, engine_id on every GPU and count on which that engine is a question."""
    allowed = pl.lit(value=True)
    for engine, vendors in _ENGINE_VENDORS.items():
        allowed &= (pl.col("engine_id") != engine) | pl.col("vendor").is_in(vendors)
    devices = grid_devices(gpus).sort("gpu_id", "gpu_count")
    return precisions.join(devices, how="cross", maintain_order="left_right").filter(allowed)


def grid_deployments(models: pl.DataFrame, reference: Reference) -> pl.DataFrame:
    """DEPLOYMENT_SCHEMA: the grid of some models, at the engines' newest versions and default settings.

    Made in the order of the marts' key, so that millions of rows need no sorting later.
    """
    precisions = grid_precisions(models, reference.precisions).sort("model_id", "precision_id", "engine_id")
    rows = (
        on_devices(precisions, reference.gpus)
        .join(grid_contexts(models).sort("context_tokens"), on="model_id", maintain_order="left_right")
        .with_row_index("row")
        .with_columns(
            pl.col("row").cast(pl.Int64),
            tensor_parallel=pl.col("gpu_count"),
            pipeline_parallel=pl.lit(1, pl.Int64),
            data_parallel=pl.lit(1, pl.Int64),
            kv_cache_dtype=pl.lit("bf16"),
        )
    )
    return as_deployments(rows)


def as_deployments(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that hold some columns of DEPLOYMENT_SCHEMA → all of them; what is absent is the engine's default."""
    blank = [pl.lit(None, dtype).alias(name) for name, dtype in DEPLOYMENT_SCHEMA.items() if name not in rows.columns]
    return conform(rows.with_columns(blank), DEPLOYMENT_SCHEMA, stage="grid")


def compute_marts(models: Models, reference: Reference) -> Marts:
    """Every mart row of these models, from the anatomy to the speed (costs follow with the prices)."""
    deployments = grid_deployments(models.models, reference)
    answers = _with_eight_bit_users(deployments, judge(deployments, models, reference), models, reference)
    contexts = deployments.select("model_id", "context_tokens").unique()
    return Marts(
        footprint=footprints(deployments, models, reference).drop("engine_version", "imatrix"),
        kv_cache=_kv_cache(contexts, models, reference),
        capacity=_capacity(answers),
        fit=answers.select(
            *KEY, "context_tokens", "required_bytes", "taken_bytes", "headroom_bytes",
            "users", "users_kv8", "verdict", "limited_by",
        ),
        speed=_speed(answers, models, reference),
        finetune=finetune_rows(models, reference),
    )  # fmt: skip


def _with_eight_bit_users(
    deployments: pl.DataFrame, answers: pl.DataFrame, models: Models, reference: Reference
) -> pl.DataFrame:
    """Add `users_kv8`, asked only where the weights leave room for a cache; elsewhere it is `users`."""
    has_room = answers.select("row").filter(answers["kv_available_bytes_high"] > 0)
    asked = in_devices(deployments.join(has_room, on="row", how="semi", maintain_order="left"), reference.gpus)
    held = engine_memory(asked.with_columns(kv_cache_dtype=pl.lit("fp8")), models, reference)
    return answers.join(
        held.select("row", eight="users"), on="row", how="left", validate="1:1", maintain_order="left"
    ).with_columns(users_kv8=pl.coalesce("eight", "users"))


def _capacity(answers: pl.DataFrame) -> pl.DataFrame:
    """One row a key: what holds at any context (the smallest of the grid stands for all)."""
    at_any = ("weights", "tp_divisibility", "unsupported", "unknown")
    first = answers.filter(pl.col("context_tokens") == pl.col("context_tokens").min().over("model_id"))
    return first.select(
        *KEY, "weights_bytes", "activation_bytes", "non_torch_bytes", "cuda_graph_bytes", "budget_bytes",
        "kv_available_bytes", "kv_available_bytes_low", "kv_available_bytes_high", "support",
        "compute_buffer_bytes", "fit_context_tokens",
        limited_by=pl.when(pl.col("limited_by").is_in(at_any)).then("limited_by"),
    )  # fmt: skip


def _kv_cache(contexts: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """What the architecture needs for one sequence, and what each engine's newest version sets aside for it."""
    wanted = contexts.join(pl.DataFrame({"kv_precision": KV_PRECISIONS}), how="cross")
    rows = kv_minimum_bytes(models.caches, wanted)
    for engine_id, (precision_id, column, precisions) in _ENGINE_CACHES.items():
        asked = wanted.filter(pl.col("kv_precision").is_in(precisions)).with_columns(
            row=pl.int_range(pl.len(), dtype=pl.Int64),
            engine_id=pl.lit(engine_id),
            precision_id=pl.lit(precision_id),
            kv_cache_dtype="kv_precision",
            **dict.fromkeys(_ONE_GPU, pl.lit(1, pl.Int64)),
        )
        held = engine_memory(as_deployments(asked), models, reference)
        sized = asked.join(held, on="row", validate="1:1").select(
            *_CACHE_KEY, pl.col("sequence_kv_bytes").alias(column)
        )
        rows = rows.join(sized, on=_CACHE_KEY, how="left", validate="1:1")
    return rows


_CACHE_KEY = ["model_id", "context_tokens", "kv_precision"]
_ONE_GPU = ("gpu_count", "tensor_parallel", "pipeline_parallel", "data_parallel")
# engine → (a precision it runs, the column, the KV precisions it has)
_ENGINE_CACHES = {
    "vllm": ("native", "vllm_bytes", ("bf16", "fp8")),
    "llama.cpp": ("gguf-q8_0", "llamacpp_bytes", ("bf16", "q8_0", "q4_0")),
}


def _speed(answers: pl.DataFrame, models: Models, reference: Reference) -> pl.DataFrame:
    """Speeds of what fits: a request fills the context, three quarters prompt and one answer."""
    runs = answers.filter(pl.col("verdict").is_in(["fits", "tight"])).select(
        "row", *KEY, "context_tokens", "tensor_parallel", "kv_cache_dtype", "engine_version", "imatrix",
        "engine_version_used", "users",
    )  # fmt: skip
    prompt = (pl.col("context_tokens") * INPUT_SHARE).cast(pl.Int64)
    runs = with_facts(runs, models, reference).with_columns(
        input_tokens=prompt,
        output_tokens=pl.col("context_tokens") - prompt,
        cached_tokens=pl.lit(0, pl.Int64),
        batch=pl.lit(1, pl.Int64),
        throughput_batch=pl.col("users").fill_null(1).clip(1, MAX_SERVED),
    )
    speeds = with_request_speed(runs, models, reference, min_user_tokens_per_s=MIN_USER_TOKENS_PER_S)
    return speeds.select(
        *KEY, "context_tokens", "throughput_batch",
        *(f"{name}{end}" for name in _SPEEDS for end in ("", "_low", "_high")), *_TERMS,
    ).rename({"throughput_batch": "served_users"})  # fmt: skip


_SPEEDS = ("decode_tokens_per_s", "prefill_tokens_per_s", "ttft_ms", "throughput_tokens_per_s")
_TERMS = (
    "decode_fixed_s", "decode_experts_s", "decode_s_per_user", "decode_s_per_kv_token", "prefill_s_per_token",
    "prefill_fixed_s",
)  # fmt: skip
