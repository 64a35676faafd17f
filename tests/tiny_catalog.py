"""A catalog of two models and three GPUs, small enough to know every row by heart.

Qwen2.5-72B's figures are its published ones: 72,706,203,648 parameters, 2 bytes each; 80 layers × 2 × 8 heads × 128 × 2
bytes = 327,680 bytes of 16-bit KV a token. The verdicts, speeds and prices are made up, but agree with one another.
"""

from datetime import date, datetime
from pathlib import Path

import duckdb
import polars as pl

from fitmart.warehouse import load, publish

QWEN = "Qwen/Qwen2.5-72B-Instruct"
TINY = "example/Tiny-1B"
BUILT_AT = datetime(2026, 12, 1, 12)
KV_8K, KV_32K = 2_684_354_560, 10_737_418_240
BF16_BYTES, INT4_BYTES = 145_412_407_296, 41_600_000_000
GIB = 2**30


def _frame(columns: str, *rows: tuple) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=columns.split(), orient="row", infer_schema_length=None)


def _fit(model, precision, gpu, count, context, required, headroom, users, verdict, limit=None):
    gpu_budget = {"nvidia-h100-sxm": 76, "nvidia-rtx-4090": 21, "amd-mi300x": 172}[gpu] * GIB
    key = (model, precision, "vllm", gpu, count, context)
    return (*key, required, gpu_budget * count, headroom, users, 2 * users, verdict, limit)


FIT = [
    _fit(QWEN, "bf16", "nvidia-h100-sxm", 1, 8192, 151_000_000_000, -70 * GIB, 0, "no", "weights"),
    _fit(QWEN, "bf16", "nvidia-h100-sxm", 2, 8192, 155_000_000_000, -GIB, 0, "no", "weights"),
    _fit(QWEN, "bf16", "amd-mi300x", 1, 8192, 150_000_000_000, 20 * GIB, 8, "fits"),
    _fit(QWEN, "bf16", "amd-mi300x", 1, 32768, 158_000_000_000, 12 * GIB, 2, "fits"),
    _fit(QWEN, "awq-int4", "nvidia-h100-sxm", 1, 8192, 46_000_000_000, 25 * GIB, 11, "fits"),
    _fit(QWEN, "awq-int4", "nvidia-h100-sxm", 1, 32768, 54_000_000_000, 17 * GIB, 2, "fits"),
    _fit(QWEN, "awq-int4", "nvidia-h100-sxm", 2, 8192, 50_000_000_000, 96 * GIB, 40, "fits"),
    _fit(QWEN, "awq-int4", "nvidia-rtx-4090", 1, 8192, 45_000_000_000, -21 * GIB, 0, "no", "weights"),
    _fit(QWEN, "awq-int4", "nvidia-rtx-4090", 2, 8192, 47_000_000_000, -GIB // 4, 1, "tight"),
    _fit(QWEN, "awq-int4", "amd-mi300x", 1, 8192, 46_000_000_000, 0, 0, "unknown", "unknown"),
    _fit(TINY, "bf16", "nvidia-rtx-4090", 1, 8192, 4_000_000_000, 15 * GIB, 60, "fits"),
]
_KEY = "model_id precision_id engine_id gpu_id gpu_count context_tokens"
_RUNS = [row[:6] for row in FIT if row[11] in ("fits", "tight")]


def _speed(key: tuple) -> tuple:
    decode = 40.0 / key[4]
    bands = [v for x in (decode, 2000.0, 400.0, decode * 5) for v in (x, x * 0.8, x * 1.25)]
    return (*key, *bands, 5, 0.02, 0.0, 0.001, 1e-7, 0.0005, 0.02)


def _cost(key: tuple) -> tuple:
    offers = {
        ("nvidia-h100-sxm", 1): ("h100-one", "h100-spot", 2.79, 1.5),
        ("nvidia-h100-sxm", 2): ("h100-each", None, 5.98, None),
        ("amd-mi300x", 1): ("mi300x-one", None, 1.99, None),
    }
    offer, spot, hour, spot_hour = offers.get((key[3], key[4]), (None, None, None, None))
    month = round(hour * 730, 2) if hour else None
    mtok = round(hour / (200 * 0.4 * 3600) * 1e6, 4) if hour else None
    power = 76.6 * key[4]  # 700 W around the clock at 0.15 USD/kWh
    price = {"nvidia-h100-sxm": 30_000.0, "nvidia-rtx-4090": 1600.0}.get(key[3])
    bought = price and price * key[4]
    payback = bought / (month - power) if bought and month else None
    banded = (mtok, mtok and mtok * 0.8, mtok and mtok * 1.25)
    blended = tuple(price and price / 4 for price in banded)
    return (*key, offer, spot, hour, month, *banded, 0.4, power, bought, payback, spot_hour, *blended)


# Qwen2.5-72B's weights: component, name, layers, rows, columns.
TENSORS = [
    ("embedding", "embed_tokens", 1, 152_064, 8192),
    ("lm_head", "lm_head", 1, 152_064, 8192),
    *(("mlp", f"{name}_proj", 80, *shape) for name, shape in (("gate", (29_568, 8192)), ("up", (29_568, 8192)),
                                                            ("down", (8192, 29_568)))),
    *(("attention", f"{name}_proj", 80, rows, 8192) for name, rows in (("q", 8192), ("k", 1024), ("v", 1024),
                                                                       ("o", 8192))),
    *(("attention", f"{name}_proj.bias", 80, rows, 1) for name, rows in (("q", 8192), ("k", 1024), ("v", 1024))),
    ("norm", "layernorms", 160, 8192, 1),
    ("norm", "norm", 1, 8192, 1),
]  # fmt: skip


def _tensor(row: tuple) -> tuple:
    component, name, layers, rows, columns = row
    return (QWEN, component, name, layers, rows, columns, layers * rows * columns, "rows", 1, True, True)


FRAMES: dict[str, pl.DataFrame] = {
    "source": _frame(
        "source_id publisher url license kind may_ship max_age_hours needs_key",
        ("huggingface", "Hugging Face", "https://huggingface.co", "per repository", "model", True, 720, None),
        ("datasheets", "vendors", "https://www.nvidia.com", "facts", "gpu", True, None, None),
        ("lambda", "Lambda", "https://lambda.ai/pricing", None, "price", True, 168, None),
        ("marketplace", "Vast.ai", "https://vast.ai", None, "price", True, 24, "VAST_API_KEY"),
    ),
    "model": _frame(
        "model_id family model_type params_total params_active layers hidden_size vocab_size attention_heads kv_heads "
        "attention_kind max_context_tokens extended_context_tokens base_model source_id observed_at",
        (QWEN, "decoder", "qwen2", 72_706_203_648, 72_706_203_648, 80, 8192, 152_064, 64, 8, "gqa", 32_768, 131_072,
         "Qwen/Qwen2.5-72B", "huggingface", datetime(2026, 11, 30)),
        (TINY, "decoder", "llama", 1_000_000_000, 1_000_000_000, 16, 2048, 32_000, 32, 32, "mha", 8192, 8192,
         None, "huggingface", datetime(2026, 11, 30)),
    ),
    "gpu": _frame(
        "gpu_id name vendor gpu_architecture memory_bytes memory_basis marketed_memory_gb bandwidth_bytes_per_s "
        "bf16_flop_per_s tdp_w is_unified_memory max_gpu_count purchase_usd is_released confidence source_id "
        "observed_on",
        ("amd-mi300x", "Instinct MI300X", "AMD", "CDNA3", 205_822_885_888, "measured", 192.0, 5.3e12,
         1.307e15, 750.0, False, 8, None, True, "high", "datasheets", date(2026, 12, 1)),
        ("nvidia-h100-sxm", "H100 SXM", "NVIDIA", "Hopper", 85_520_809_984, "measured", 80.0, 3.35e12,
         9.89e14, 700.0, False, 8, 30_000.0, True, "high", "datasheets", date(2026, 12, 1)),
        ("nvidia-rtx-4090", "GeForce RTX 4090", "NVIDIA", "Ada", 25_757_220_864, "measured", 24.0, 1.008e12,
         1.65e14, 450.0, False, 4, 1600.0, True, "high", "datasheets", date(2026, 12, 1)),
    ),
    "engine": _frame("engine_id name version source_id", ("vllm", "vLLM", "0.20.0", "datasheets")),
    "precision": _frame(
        "precision_id precision_class container engine_id linear_format bits_per_weight is_in_grid source_id",
        ("bf16", "bf16", "hf", "vllm", "bf16", 16.0, True, "datasheets"),
        ("awq-int4", "int4", "hf", "vllm", "awq-int4-g128", 4.0, True, "datasheets"),
    ),
    "provider": _frame(
        "provider_id name billing_granularity egress_usd_per_gb has_scale_to_zero source_id",
        ("lambda", "Lambda", "minute", 0.0, False, "lambda"),
        ("vast", "Vast.ai", "second", None, False, "marketplace"),
        ("tokens", "Token Seller", None, None, True, "lambda"),
    ),
    "offer": _frame(
        "offer_id provider_id instance_type gpu_id gpu_count min_gpu_count max_gpu_count price_scope commitment "
        "usd_per_hour usd_per_gpu_hour source_id observed_at is_stale",
        ("h100-one", "lambda", "gpu_1x_h100", "nvidia-h100-sxm", 1, None, None, "instance", "on_demand",
         2.79, 2.79, "lambda", datetime(2026, 11, 28), False),
        ("h100-each", "vast", "h100", "nvidia-h100-sxm", 1, 1, 8, "per_gpu", "on_demand",
         2.99, 2.99, "marketplace", datetime(2026, 11, 20), True),
        ("h100-spot", "vast", "h100", "nvidia-h100-sxm", 1, 1, 1, "per_gpu", "spot",
         1.5, 1.5, "marketplace", datetime(2026, 11, 20), True),
        ("h100-old", "vast", "h100-2024", "nvidia-h100-sxm", 1, None, None, "instance", "on_demand",
         1.0, 1.0, "marketplace", datetime(2026, 6, 1), True),
        ("h100-bare", "lambda", "gpu without host", "nvidia-h100-sxm", 1, None, None, "gpu_only", "on_demand",
         0.5, 0.5, "lambda", datetime(2026, 11, 28), False),
        ("mi300x-one", "lambda", "mi300x", "amd-mi300x", 1, None, None, "instance", "on_demand",
         1.99, 1.99, "lambda", datetime(2026, 11, 28), False),
    ),
    "offer_history": _frame(
        "offer_id provider_id instance_type gpu_id gpu_count commitment price_scope usd_per_hour usd_per_gpu_hour "
        "source_id valid_from valid_to last_seen_at",
        ("h100-one", "lambda", "gpu_1x_h100", "nvidia-h100-sxm", 1, "on_demand", "instance", 2.99, 2.99,
         "lambda", datetime(2026, 9, 1), datetime(2026, 11, 1), datetime(2026, 10, 31)),
        ("h100-one", "lambda", "gpu_1x_h100", "nvidia-h100-sxm", 1, "on_demand", "instance", 2.79, 2.79,
         "lambda", datetime(2026, 11, 1), None, datetime(2026, 11, 28)),
        ("h100-each", "vast", "h100", "nvidia-h100-sxm", 1, "on_demand", "per_gpu", 2.99, 2.99,
         "marketplace", datetime(2026, 11, 20), None, datetime(2026, 11, 20)),
        ("h100-spot", "vast", "h100", "nvidia-h100-sxm", 1, "spot", "per_gpu", 1.5, 1.5,
         "marketplace", datetime(2026, 11, 20), None, datetime(2026, 11, 20)),
        ("h100-bare", "lambda", "gpu without host", "nvidia-h100-sxm", 1, "on_demand", "gpu_only", 0.5, 0.5,
         "lambda", datetime(2026, 11, 1), None, datetime(2026, 11, 28)),
        ("h100-gone", "vast", "h100-two", "nvidia-h100-sxm", 2, "on_demand", "instance", 4.0, 2.0,
         "marketplace", datetime(2026, 10, 1), datetime(2026, 11, 20), datetime(2026, 11, 19)),
        ("mi300x-one", "lambda", "mi300x", "amd-mi300x", 1, "on_demand", "instance", 1.99, 1.99,
         "lambda", datetime(2026, 11, 28), None, datetime(2026, 11, 28)),
    ),
    "offer_rival": _frame(
        "offer_id source_id usd_per_hour observed_at standing_usd_per_hour standing_source_id",
        ("h100-one", "marketplace", 3.1, datetime(2026, 11, 20), 2.79, "lambda"),
    ),
    "best_offer": _frame(
        "gpu_id gpu_count commitment offer_id usd_per_hour price_basis provider_id observed_at",
        ("nvidia-h100-sxm", 1, "on_demand", "h100-one", 2.79, "offered", "lambda", datetime(2026, 11, 28)),
        ("nvidia-h100-sxm", 2, "on_demand", "h100-each", 5.98, "scaled", "vast", datetime(2026, 11, 20)),
        ("nvidia-h100-sxm", 1, "spot", "h100-spot", 1.5, "offered", "vast", datetime(2026, 11, 20)),
        ("amd-mi300x", 1, "on_demand", "mi300x-one", 1.99, "offered", "lambda", datetime(2026, 11, 28)),
    ),
    "api_price": _frame(
        "provider_id model_id model_name_raw input_usd_per_mtok output_usd_per_mtok source_id observed_at",
        ("tokens", QWEN, "qwen-2.5-72b", 0.4, 1.0, "lambda", datetime(2026, 11, 28)),
    ),
    "footprint": _frame(
        "model_id precision_id weights_total_bytes file_bytes file_bytes_low file_bytes_high basis",
        (QWEN, "bf16", BF16_BYTES, BF16_BYTES, BF16_BYTES, BF16_BYTES, "derived"),
        (QWEN, "awq-int4", INT4_BYTES, INT4_BYTES, INT4_BYTES, INT4_BYTES, "derived"),
        (TINY, "bf16", 2 * 10**9, 2 * 10**9, 2 * 10**9, 2 * 10**9, "derived"),
    ),
    "kv_cache": _frame(
        "model_id context_tokens kv_precision minimum_bytes vllm_bytes",
        (QWEN, 8192, "bf16", KV_8K, KV_8K),
        (QWEN, 32768, "bf16", KV_32K, KV_32K),
        (QWEN, 8192, "fp8", KV_8K // 2, KV_8K // 2),
        (QWEN, 32768, "fp8", KV_32K // 2, KV_32K // 2),
        (TINY, 8192, "bf16", GIB, GIB),
    ),
    "capacity": _frame(
        "model_id precision_id engine_id gpu_id gpu_count weights_bytes budget_bytes kv_available_bytes "
        "kv_available_bytes_low kv_available_bytes_high support fit_context_tokens",
        (QWEN, "awq-int4", "vllm", "nvidia-h100-sxm", 1, INT4_BYTES, 76 * GIB, 28 * GIB, 27 * GIB, 29 * GIB,
         "native", 91_000),
        (QWEN, "bf16", "vllm", "nvidia-h100-sxm", 2, BF16_BYTES // 2, 76 * GIB, GIB, 0, 2 * GIB, "native", 3_000),
        (QWEN, "bf16", "vllm", "amd-mi300x", 1, BF16_BYTES, 172 * GIB, 45 * GIB // 2, 22 * GIB, 23 * GIB, "native",
         73_000),
        (QWEN, "awq-int4", "vllm", "nvidia-h100-sxm", 2, INT4_BYTES // 2, 76 * GIB, 101 * GIB // 2, 50 * GIB, 51 * GIB,
         "native", 131_072),
        (QWEN, "awq-int4", "vllm", "nvidia-rtx-4090", 1, INT4_BYTES, 21 * GIB, -19 * GIB, -20 * GIB, -18 * GIB,
         "native", 0),
        (QWEN, "awq-int4", "vllm", "nvidia-rtx-4090", 2, INT4_BYTES // 2, 21 * GIB, GIB, GIB // 2, 2 * GIB, "native",
         7_000),
    ),
    "fit": _frame(f"{_KEY} required_bytes taken_bytes headroom_bytes users users_kv8 verdict limited_by", *FIT),
    "speed": _frame(
        f"{_KEY} decode_tokens_per_s decode_tokens_per_s_low decode_tokens_per_s_high prefill_tokens_per_s "
        "prefill_tokens_per_s_low prefill_tokens_per_s_high ttft_ms ttft_ms_low ttft_ms_high throughput_tokens_per_s "
        "throughput_tokens_per_s_low throughput_tokens_per_s_high served_users decode_fixed_s decode_experts_s "
        "decode_s_per_user "
        "decode_s_per_kv_token prefill_s_per_token prefill_fixed_s",
        *map(_speed, _RUNS),
    ),
    "cost": _frame(
        f"{_KEY} on_demand_offer_id spot_offer_id usd_per_hour usd_per_month usd_per_mtok usd_per_mtok_low "
        "usd_per_mtok_high utilisation_share power_usd_per_month purchase_usd payback_months spot_usd_per_hour "
        "usd_per_mtok_blended usd_per_mtok_blended_low usd_per_mtok_blended_high",
        *map(_cost, _RUNS),
    ),
    "model_tensor": _frame(
        "model_id component tensor layer_count rows columns params tp_axis copies is_in_memory is_stored",
        *map(_tensor, TENSORS),
    ),
    "model_cache": _frame(
        "model_id kind layer_ids layer_count elements_per_token fixed_elements",
        (QWEN, "full", list(range(80)), 80, 2048, 0),
        (TINY, "full", list(range(16)), 16, 4096, 0),
    ).with_columns(layer_ids=pl.col("layer_ids").cast(pl.List(pl.Int32))),
    "config_field": _frame(
        "model_id field field_value meaning effect",
        (QWEN, "num_hidden_layers", "80", "layers", "weights and KV cache"),
        (QWEN, "hidden_size", "8192", "width of the vector a token becomes", "weights and KV cache"),
    ),
    "engine_default": _frame(
        "engine_id since_version until_version parameter value source_id observed_on",
        ("vllm", "0.5.0", "0.20.0", "gpu_memory_utilization", "0.9", "datasheets", date(2026, 12, 1)),
        ("vllm", "0.20.0", None, "gpu_memory_utilization", "0.92", "datasheets", date(2026, 12, 1)),
    ),
    "launch_template": _frame(
        "engine_id vendor precision_id kind template source_id observed_on",
        ("vllm", None, None, "command", "serve {repository} tp {gpus} len {context} util {utilization} kv {kv}{flags}",
         "datasheets", date(2026, 12, 1)),
        ("vllm", "NVIDIA", None, "docker", "docker vllm:{version} {model} {users}", "datasheets", date(2026, 12, 1)),
        ("vllm", None, None, "extended", " yarn {factor} of {original} at {rope_theta}", "datasheets",
         date(2026, 12, 1)),
        ("vllm", None, None, "kv_16", "auto", "datasheets", date(2026, 12, 1)),
        ("vllm", None, None, "kv_8", "fp8", "datasheets", date(2026, 12, 1)),
    ),
    "finetune": _frame(
        "model_id method optimizer sequence_tokens gpu_count weights_bytes adapter_bytes gradients_bytes "
        "optimizer_bytes activation_bytes logits_bytes overhead_bytes total_bytes lora_rank batch is_checkpointed "
        "smallest_gpu_id",
        (QWEN, "lora", "adamw", 2048, 1, BF16_BYTES, GIB, GIB, 2 * GIB, GIB, GIB, GIB, BF16_BYTES + 7 * GIB, 16, 1,
         True, "amd-mi300x"),
        (QWEN, "full", "adamw", 2048, 8, 20 * GIB, 0, 17 * GIB, 100 * GIB, 3 * GIB, 5 * GIB, GIB, 146 * GIB, None, 1,
         True, None),
    ),
    "source_run": _frame(
        "source_id started_at ended_at status payloads added bytes reason",
        ("lambda", datetime(2026, 11, 28), datetime(2026, 11, 28), "ok", 1, 1, 1000, ""),
        ("lambda", datetime(2026, 12, 1), datetime(2026, 12, 1), "failed", 0, 0, 0, "HTTP 503"),
        ("marketplace", datetime(2026, 12, 1), datetime(2026, 12, 1), "skipped", 0, 0, 0, "needs VAST_API_KEY"),
    ),
    "rejected": _frame("source_id raw_text reason", ("lambda", '{"gpu": "H900"}', "no GPU of that name")),
}  # fmt: skip


def fill(con: duckdb.DuckDBPyConnection, *, build_id: str = "20261201T120000000Z", **changed: pl.DataFrame) -> None:
    """Load FRAMES, or `changed` ones in their stead, with views and macros."""
    frames = FRAMES | changed
    load.create_schema(con, frames)
    load.load_frames(con, frames)
    load.create_views(con)
    load.write_build(
        con, build_id=build_id, code_version="0.1.0", built_at=BUILT_AT, input_hashes={"seeds": build_id},
        build_seconds=1.5,
    )  # fmt: skip


def in_memory(**changed: pl.DataFrame) -> duckdb.DuckDBPyConnection:
    """The tiny catalog without a file."""
    con = duckdb.connect()
    fill(con, **changed)
    return con


def published(data_dir: Path, build_id: str = "20261201T120000000Z") -> Path:
    """The tiny catalog, checked and published; the data folder."""
    with publish.new_build(data_dir, build_id) as con:
        fill(con, build_id=build_id)
    publish.publish(data_dir, build_id)
    return data_dir
