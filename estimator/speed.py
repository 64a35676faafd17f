"""How fast: a decode step, a prefill and a whole request, from the bytes and operations they cost.

Every time is a sum of physical times, each a quantity over a data-sheet rate times a measured factor (1 / efficiency):

    decode step  = weight bytes touched / bandwidth × w  +  KV bytes read / bandwidth × kv  +  FLOPs / peak × fl
                 + layers × launch  +  MoE layers × routing  +  sequences × scheduling  +  tensor-parallel exchange
    prefill      = FLOPs / peak × pf  +  attention FLOPs / peak × pfa  +  per chunk: weights read, launches, exchange

A batch of B tokens touches experts × (1 - (1 - k / experts)^B) of the experts (independent routing). The factors are
fitted to published measurements per engine, device class and precision class, and come in as data
(warehouse/seeds/speed_coefficient.csv, made by tests/accuracy/fit_speed.py); bands are the 10 % and 90 % quantiles of
residuals with the row's model, or its source, left out.
"""

import polars as pl

from fitmart.estimator.frames import schema

# Names of the factors. w16, w8, w4, kv, fl, pf16, pfq, pfm, pfa and arb are ratios; the others seconds.
TERMS = ("w16", "w8", "w4", "kv", "fl", "pf16", "pfq", "pfm", "pfa", "L", "Lo", "Lm", "B", "ar", "arb")
KINDS = ("decode", "prefill", "e2e")
REFERENCE_LINK_BYTES_PER_S = 100e9  # `arb` is relative to this exchange rate between GPUs
# Prompt tokens that an engine computes at once.
CHUNK_TOKENS = {"llama.cpp": 512, "mlx": 2048}
SERVER_CHUNK_TOKENS = 8192

WORKLOAD_SCHEMA = schema(
    engine_id=pl.String,
    era=pl.String,  # old or current: which measurements describe this engine version
    device_class=pl.String,
    weight_bits=pl.Int64,  # 16, 8 or 4: the precision class of the matrices
    dense_bytes=pl.Float64,  # weights every token reads, all GPUs
    expert_bytes=pl.Float64,  # routed experts, all GPUs
    experts=pl.Int64,
    experts_per_token=pl.Int64,
    params_active=pl.Int64,
    hidden_size=pl.Int64,
    layers=pl.Int64,
    moe_layers=pl.Int64,
    attention_layers=pl.Int64,  # those whose cost grows with the square of the prompt
    kv_bytes_per_sequence=pl.Float64,  # read in one decode step, all GPUs
    bandwidth_bytes_per_s=pl.Float64,  # one GPU
    peak_flop_per_s=pl.Float64,  # one GPU, of the kernels that this engine uses for these weights
    gpus=pl.Int64,  # that work on one token at once (tensor parallel)
    batch=pl.Int64,  # sequences decoded at once: for the speed of one of them
    throughput_batch=pl.Int64,  # sequences served at once: for the speed of all
    input_tokens=pl.Int64,
    output_tokens=pl.Int64,
    cached_tokens=pl.Int64,
)


def device_class(vendor: str, memory_type: str, form_factor: str) -> pl.Expr:
    """Column names → the class whose measurements apply: nvidia-hbm, nvidia-gddr, amd-dc, amd-gpu, apple, other."""
    is_hbm = pl.col(memory_type).str.starts_with("HBM")
    is_module = pl.col(form_factor).is_in(["OAM", "APU socket"])
    return (
        pl.when(pl.col(vendor) == "NVIDIA")
        .then(pl.when(is_hbm).then(pl.lit("nvidia-hbm")).otherwise(pl.lit("nvidia-gddr")))
        .when(pl.col(vendor) == "AMD")
        .then(pl.when(is_hbm & is_module).then(pl.lit("amd-dc")).otherwise(pl.lit("amd-gpu")))
        .when(pl.col(vendor) == "Apple")
        .then(pl.lit("apple"))
        .otherwise(pl.lit("other"))
    )


def peak_flop_per_s() -> pl.Expr:
    """FLOP/s of the kernels in use, from `engine_id`, `vendor`, `weight_bits` and the GPU's rates.

    llama.cpp on NVIDIA multiplies quantized weights as INT8 (its rate is half the data sheet's operations on every
    card, GeForce or workstation); servers run 8-bit weights at the FP8 rate where the card has one.
    """
    sixteen = pl.coalesce("bf16_flop_per_s", "fp16_flop_per_s", "fp32_flop_per_s")
    is_llamacpp = pl.col("engine_id") == "llama.cpp"
    is_server = ~pl.col("engine_id").is_in(list(CHUNK_TOKENS))
    return (
        pl.when(is_llamacpp & (pl.col("vendor") == "NVIDIA") & pl.col("int8_op_per_s").is_not_null())
        .then(pl.col("int8_op_per_s") / 2)
        .when(is_server & (pl.col("weight_bits") == 8) & pl.col("fp8_flop_per_s").is_not_null())
        .then(pl.col("fp8_flop_per_s"))
        .otherwise(sixteen)
    )


def widen(coefficients: pl.DataFrame) -> pl.DataFrame:
    """Rows (engine_id, era, device_class, term, value) → one row a group with a column a term and a band a kind."""
    bands = [f"band_{side}_{kind}" for kind in KINDS for side in ("low", "high")]
    wide = coefficients.pivot(
        "term", index=["engine_id", "era", "device_class"], values="value", aggregate_function="first"
    )
    return wide.select(
        "engine_id", "era", "device_class",
        *((pl.col(c) if c in wide.columns else pl.lit(None, pl.Float64)).alias(c) for c in (*TERMS, *bands)),
    )  # fmt: skip


def _touched(tokens: pl.Expr) -> pl.Expr:
    """Weight bytes that `tokens` tokens of one step read."""
    share = pl.col("experts_per_token") / pl.col("experts")
    experts = pl.col("expert_bytes") * (1 - (1 - share).pow(tokens))
    return pl.col("dense_bytes") + pl.when(pl.col("experts") > 0).then(experts).otherwise(pl.col("expert_bytes"))


def _weight_factor() -> pl.Expr:
    bits = pl.col("weight_bits")
    return pl.when(bits == 16).then(pl.col("w16")).when(bits == 8).then(pl.col("w8")).otherwise(pl.col("w4"))


def _launches() -> pl.Expr:
    """Seconds a step spends on launching layers, routing and starting exchanges."""
    exchange = pl.when(pl.col("gpus") > 1).then(pl.col("layers") * pl.col("ar")).otherwise(0.0)
    old = pl.when(pl.col("era") == "old").then(pl.col("Lo")).otherwise(0.0)
    return pl.col("layers") * (pl.col("L") + old) + pl.col("moe_layers") * pl.col("Lm") + exchange


def _exchange(tokens: pl.Expr) -> pl.Expr:
    """Seconds for the activations of `tokens` tokens to cross between GPUs: two all-reduces a layer, 16 bit."""
    crossing = 4 * tokens * pl.col("hidden_size") * pl.col("layers") / REFERENCE_LINK_BYTES_PER_S
    return pl.when(pl.col("gpus") > 1).then(crossing * pl.col("arb")).otherwise(0.0)


def decode_step_s(batch: pl.Expr) -> pl.Expr:
    """Seconds of one step that gives each of `batch` sequences one token."""
    rate = pl.col("bandwidth_bytes_per_s") * pl.col("gpus")
    weights = _touched(batch) / rate * _weight_factor()
    caches = batch * pl.col("kv_bytes_per_sequence") / rate * pl.col("kv")
    compute = 2.0 * pl.col("params_active") * batch / (pl.col("peak_flop_per_s") * pl.col("gpus")) * pl.col("fl")
    return weights + caches + compute + _launches() + batch * pl.col("B") + _exchange(batch)


def prefill_s(sequences: pl.Expr) -> pl.Expr:
    """Seconds until the prompts (`input_tokens`) of `sequences` sequences are in the KV cache."""
    per_sequence = pl.col("input_tokens").cast(pl.Float64)
    tokens = per_sequence * sequences
    chunk = pl.col("engine_id").replace_strict(CHUNK_TOKENS, default=SERVER_CHUNK_TOKENS, return_dtype=pl.Float64)
    chunks = (tokens / chunk).ceil()
    peak = pl.col("peak_flop_per_s") * pl.col("gpus")
    factor = pl.when(pl.col("weight_bits") == 16).then(pl.col("pf16")).otherwise(pl.col("pfq"))
    factor += pl.when(pl.col("experts") > 0).then(pl.col("pfm")).otherwise(0.0)
    gemm = 2.0 * pl.col("params_active") * tokens / peak * factor
    pairs = per_sequence * (per_sequence / 2 + pl.col("cached_tokens"))
    attention = 4.0 * pl.col("hidden_size") * pl.col("attention_layers") * pairs * sequences / peak * pl.col("pfa")
    rate = pl.col("bandwidth_bytes_per_s") * pl.col("gpus")
    reads = chunks * _touched(pl.min_horizontal(tokens, chunk)) / rate * _weight_factor()
    return gemm + attention + reads + chunks * _launches() + _exchange(tokens)


def with_speed(workloads: pl.DataFrame, coefficients: pl.DataFrame) -> pl.DataFrame:
    """Add the speeds and their bands to rows that hold WORKLOAD_SCHEMA.

    coefficients: `widen`ed. A group that was not measured takes the engine's pooled row (`device_class` = any), then
    the pool of all engines (`engine_id` = any), whose bands are wider.

    Adds decode_tokens_per_s (one user at that batch), prefill_tokens_per_s, ttft_ms (one unloaded request),
    throughput_tokens_per_s (output tokens of all users over the whole request), each with _low and _high, and the
    linear terms of a step of the served batch: decode_fixed_s, decode_s_per_user, decode_s_per_kv_token,
    prefill_s_per_token. Null where bandwidth or peak is not known.
    """
    rows = _with_coefficients(workloads, coefficients)
    batch, served = (pl.col(c).cast(pl.Float64) for c in ("batch", "throughput_batch"))
    one, none = pl.lit(1.0), pl.lit(0.0)
    rows = rows.with_columns(
        step=decode_step_s(batch),
        prompt=prefill_s(one),
        request=prefill_s(served) + pl.col("output_tokens") * decode_step_s(served),
        per_sequence=decode_step_s(one) - decode_step_s(none) - _expert_growth(),
        decode_s_per_kv_token=_kv_token_s(),
    )
    rows = rows.with_columns(
        decode_fixed_s=decode_step_s(served) - served * pl.col("per_sequence"),
        decode_s_per_user=pl.col("per_sequence") - pl.col("decode_s_per_kv_token") * _context_tokens(),
        prefill_s_per_token=pl.col("prompt") / pl.col("input_tokens").clip(1),
    )
    figures = {
        "decode_tokens_per_s": (1 / pl.col("step"), "decode", False),
        "prefill_tokens_per_s": (pl.col("input_tokens") / pl.col("prompt"), "prefill", False),
        "ttft_ms": (pl.col("prompt") * 1e3, "prefill", True),
        "throughput_tokens_per_s": (served * pl.col("output_tokens") / pl.col("request"), "e2e", False),
    }
    columns = []
    for name, (value, kind, is_time) in figures.items():
        low, high = pl.col(f"band_low_{kind}"), pl.col(f"band_high_{kind}")
        columns += [
            value.alias(name),
            (value * low if is_time else value / high).alias(f"{name}_low"),
            (value * high if is_time else value / low).alias(f"{name}_high"),
        ]
    bands = [f"band_{side}_{kind}" for kind in KINDS for side in ("low", "high")]
    return rows.with_columns(columns).drop(*TERMS, *bands, "step", "prompt", "request", "per_sequence")


def _kv_token_s() -> pl.Expr:
    """Seconds that one token more in the caches adds to a step."""
    rate = pl.col("bandwidth_bytes_per_s") * pl.col("gpus")
    return pl.col("kv_bytes_per_sequence") / _context_tokens() / rate * pl.col("kv")


def _context_tokens() -> pl.Expr:
    """Tokens in one sequence's cache when half of its output is written."""
    tokens = pl.col("cached_tokens") + pl.col("input_tokens") + pl.col("output_tokens") / 2
    return tokens.clip(1)


def _expert_growth() -> pl.Expr:
    """Seconds by which the first token's experts weigh on a step: not linear in users, so kept in the fixed term."""
    rate = pl.col("bandwidth_bytes_per_s") * pl.col("gpus")
    return (_touched(pl.lit(1.0)) - _touched(pl.lit(0.0))) / rate * _weight_factor()


def _with_coefficients(workloads: pl.DataFrame, coefficients: pl.DataFrame) -> pl.DataFrame:
    """Join the nearest measured group: engine and class, then the engine's pool, then the pool of all."""
    values = [c for c in coefficients.columns if c not in ("engine_id", "era", "device_class")]
    wanted = workloads.select("engine_id", "era", "device_class").unique()
    steps = [
        (pl.col("engine_id"), pl.col("era"), pl.col("device_class")),
        (pl.col("engine_id"), pl.lit("current"), pl.col("device_class")),
        (pl.col("engine_id"), pl.lit("old"), pl.col("device_class")),
        (pl.col("engine_id"), pl.lit("current"), pl.lit("any")),
        (pl.lit("any"), pl.lit("current"), pl.lit("any")),
    ]
    found = wanted
    for i, (engine, era, device) in enumerate(steps):
        keyed = wanted.select("engine_id", "era", "device_class", e=engine, r=era, d=device)
        group = coefficients.rename({"engine_id": "e", "era": "r", "device_class": "d"})
        match = keyed.join(group, on=["e", "r", "d"], how="left", validate="m:1").drop("e", "r", "d")
        found = found.join(
            match.rename({v: f"{v}|{i}" for v in values}), on=["engine_id", "era", "device_class"], validate="1:1"
        )
    # A term that the nearest group could not measure comes from the next pool that did.
    found = found.select(
        "engine_id",
        "era",
        "device_class",
        *(pl.coalesce(f"{v}|{i}" for i in range(len(steps))).alias(v) for v in values),
    )
    return workloads.join(
        found, on=["engine_id", "era", "device_class"], how="left", maintain_order="left", validate="m:1"
    )
