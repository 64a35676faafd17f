"""What a configuration has to do: the bytes and operations that `speed` turns into seconds."""

import polars as pl

from fitmart.estimator.attention_work import KEY, attention_work
from fitmart.estimator.frames import conform, schema

# The 3:1 mix of prompt and answer in which prices are usually blended; a grid row fills its context with it.
INPUT_SHARE = 0.75

# Prompt tokens that an engine computes at once, unless the row's n_ubatch or max_num_batched_tokens says otherwise.
CHUNK_TOKENS = {"llama.cpp": 512, "mlx": 2048}
SERVER_CHUNK_TOKENS = 8192
# Engines that give each GPU some of the layers, and so work on one token with one GPU after the other.
LAYER_SPLIT_ENGINES = ("llama.cpp", "mlx")

# Between GPUs that name no link of their own: PCIe 3 ×16 or PCIe 4 ×8. Data sheets of links count both directions.
PCIE_BYTES_PER_S = 16e9

WORKLOAD_SCHEMA = schema(
    engine_id=pl.String,
    era=pl.String,  # old or current: which measurements describe this engine version
    device_class=pl.String,
    weight_bits=pl.Int64,  # 16, 8 or 4: the precision class of the matrices
    dense_bytes=pl.Float64,  # weights that every step reads, the output head among them; all GPUs
    expert_bytes=pl.Float64,  # routed experts, all GPUs
    dense_params=pl.Float64,  # of the layers, without routed experts, embedding and head
    head_params=pl.Float64,
    expert_params=pl.Float64,  # all routed experts
    experts=pl.Int64,
    experts_per_token=pl.Int64,
    host_share=pl.Float64,  # of the layers, kept in the host's memory
    host_expert_share=pl.Float64,  # of the routed experts, kept in the host's memory
    hidden_size=pl.Int64,
    blocks=pl.Float64,  # layers of a mixer and a feed-forward; one that is only either counts half
    moe_blocks=pl.Int64,
    heads_per_kv_head=pl.Float64,
    kv_read_bytes=pl.Float64,  # one sequence, one decode step, all GPUs
    score_pairs=pl.Float64,  # one prompt
    attention_flop=pl.Float64,  # one prompt
    bandwidth_bytes_per_s=pl.Float64,  # one GPU
    peak_flop_per_s=pl.Float64,  # one GPU, of the kernels that this engine uses for these weights
    attention_flop_per_s=pl.Float64,  # one GPU, of the kernels that compare queries with keys
    gpus=pl.Int64,  # that work on one token at once (tensor parallel)
    link_bytes_per_s=pl.Float64,  # one GPU to the others, one direction
    kv_gpus=pl.Int64,  # over which one sequence's cache is spread: no more than it has KV heads
    stages=pl.Int64,  # groups of layers on different GPUs: a prompt's chunks run through them as a pipeline
    replicas=pl.Int64,  # data parallel: each serves its part of the sequences
    chunk_tokens=pl.Int64,
    batch=pl.Int64,  # sequences decoded at once: for the speed of one of them
    throughput_batch=pl.Int64,  # sequences served at once: for the speed of all
    input_tokens=pl.Int64,
    output_tokens=pl.Int64,
    cached_tokens=pl.Int64,
)

# Columns of a deployment that may be absent or null, and what they then mean.
_OPTIONAL: dict[str, int | None] = {
    "pipeline_parallel": 1,
    "data_parallel": 1,
    "n_cpu_moe": 0,
    "n_gpu_layers": -1,
    "n_ubatch": None,
    "max_num_batched_tokens": None,
}


def device_class() -> pl.Expr:
    """The class whose measurements apply: nvidia-hbm, nvidia-gddr, amd-dc, amd-gpu, apple, other.

    From `vendor`, `memory_type` and `form_factor`.
    """
    is_hbm = pl.col("memory_type").str.starts_with("HBM")
    is_module = pl.col("form_factor").is_in(["OAM", "APU socket"])
    return (
        pl.when(pl.col("vendor") == "NVIDIA")
        .then(pl.when(is_hbm).then(pl.lit("nvidia-hbm")).otherwise(pl.lit("nvidia-gddr")))
        .when(pl.col("vendor") == "AMD")
        .then(pl.when(is_hbm & is_module).then(pl.lit("amd-dc")).otherwise(pl.lit("amd-gpu")))
        .when(pl.col("vendor") == "Apple")
        .then(pl.lit("apple"))
        .otherwise(pl.lit("other"))
    )


def peak_flop_per_s() -> pl.Expr:
    """FLOP/s of the kernels in use, from `engine_id`, `vendor`, `precision_id`, `weight_bits` and the GPU's rates.

    llama.cpp on NVIDIA multiplies quantized weights as INT8 and 16-bit floats with 16-bit accumulators: both run at
    half the data sheet's INT8 rate, on GeForce and workstation cards alike. Servers run 8-bit weights at the FP8 rate
    where the card has one. A card without BF16 units computes BF16 in 32 bits, at half its 16-bit rate where the data
    sheet gives no other.
    """
    sixteen = pl.coalesce("bf16_flop_per_s", "fp16_flop_per_s", "fp32_flop_per_s")
    full = pl.coalesce("fp32_flop_per_s", pl.col("fp16_flop_per_s") / 2)
    is_llamacpp = pl.col("engine_id") == "llama.cpp"
    is_server = ~pl.col("engine_id").is_in(list(CHUNK_TOKENS))
    is_bf16 = pl.col("precision_id") == "gguf-bf16"
    return (
        pl.when(is_llamacpp & is_bf16)
        .then(pl.coalesce("bf16_flop_per_s", full))
        .when(is_llamacpp & (pl.col("vendor") == "NVIDIA") & pl.col("int8_op_per_s").is_not_null())
        .then(pl.col("int8_op_per_s") / 2)
        .when(is_server & (pl.col("weight_bits") == 8) & pl.col("fp8_flop_per_s").is_not_null())
        .then(pl.col("fp8_flop_per_s"))
        .otherwise(sixteen)
    )


def attention_flop_per_s() -> pl.Expr:
    """FLOP/s of the attention kernels: llama.cpp runs them on AMD's vector units, all others on the matrix units."""
    is_vector = (pl.col("engine_id") == "llama.cpp") & (pl.col("vendor") == "AMD")
    vector = pl.coalesce("fp32_flop_per_s", pl.col("fp16_flop_per_s") / 2)
    return pl.when(is_vector).then(vector).otherwise(peak_flop_per_s())


def model_work(models: pl.DataFrame, tensors: pl.DataFrame) -> pl.DataFrame:
    """model_id and what its shape says: dense_params, head_params, expert_params, blocks, moe_blocks.

    Embeddings are looked up, not multiplied; a tied one is the head too. Towers for images and sound do not work on
    text. `blocks` counts layers with a mixer and layers with a feed-forward, halved.
    """
    served = tensors.filter(pl.col("is_in_memory"))

    def layers(*components: str) -> pl.Expr:
        found = pl.col("layer_ids").filter(pl.col("component").is_in(components))
        return found.explode().drop_nulls().n_unique()

    def params(*components: str) -> pl.Expr:
        return pl.col("params").filter(pl.col("component").is_in(components)).sum().cast(pl.Float64)

    shapes = served.group_by("model_id").agg(
        dense_params=params("attention", "mlp", "router"),
        expert_params=params("experts"),
        blocks=(layers("attention") + layers("mlp", "experts")) / 2,
        moe_blocks=layers("experts").cast(pl.Int64),
    )
    heads = models.select(
        "model_id",
        head_params=(pl.col("vocab_size") * pl.col("hidden_size")).cast(pl.Float64),
        has_head=~pl.col("is_encoder"),
    )
    return (
        shapes.join(heads, on="model_id", how="inner", validate="1:1")
        .with_columns(head_params=pl.when(pl.col("has_head")).then("head_params").otherwise(0.0))
        .drop("has_head")
    )


def _weight_bits() -> pl.Expr:
    """The precision class by which measurements are grouped, from the bits a parameter of the layers really takes."""
    layers_bytes = pl.col("attention_bytes") + pl.col("mlp_bytes") + pl.col("experts_bytes")
    bits = 8.0 * layers_bytes / (pl.col("dense_params") + pl.col("expert_params"))
    return pl.when(bits >= 12).then(16).when(bits >= 7).then(8).otherwise(4).cast(pl.Int64)


def _head_bytes() -> pl.Expr:
    """Bytes of the output head: its own tensor, or the part of a tied embedding that is the vocabulary's."""
    share = (pl.col("head_params") / pl.col("params_embedding")).clip(0, 1).fill_nan(0)
    return pl.when(pl.col("is_tied")).then(pl.col("embedding_bytes") * share).otherwise(pl.col("lm_head_bytes"))


def with_workload(
    rows: pl.DataFrame, models: pl.DataFrame, tensors: pl.DataFrame, caches: pl.DataFrame
) -> pl.DataFrame:
    """Rows of one configuration each → WORKLOAD_SCHEMA columns beside what they hold.

    Reads `model_id`, `precision_id`, `engine_id`, `era`, the model's facts (MODEL_SCHEMA), the parts of its footprint
    (FOOTPRINT_SCHEMA), the GPU's rates (GPU_SCHEMA), `tensor_parallel`, `gpu_count`, `kv_cache_dtype` and the request:
    batch, throughput_batch, input_tokens, output_tokens, cached_tokens. Of pipeline_parallel, data_parallel, n_cpu_moe,
    n_gpu_layers, n_ubatch and max_num_batched_tokens what is there counts.
    """
    absent = [pl.lit(None, pl.Int64).alias(c) for c in _OPTIONAL if c not in rows.columns]
    rows = rows.with_columns(absent).join(
        model_work(models, tensors), on="model_id", how="left", maintain_order="left", validate="m:1"
    )
    work = attention_work(models, caches, rows)
    rows = rows.join(work, on=KEY, how="left", nulls_equal=True, maintain_order="left", validate="m:1")
    option = {c: pl.col(c).fill_null(default) if default is not None else pl.col(c) for c, default in _OPTIONAL.items()}
    is_latent = pl.col("attention_kind") == "mla"
    is_layer_split = pl.col("engine_id").is_in(LAYER_SPLIT_ENGINES)
    on_gpu = option["n_gpu_layers"]
    host_share = pl.when(on_gpu < 0).then(0.0).otherwise((1 - on_gpu / pl.col("layers")).clip(0, 1))
    host_experts = (option["n_cpu_moe"] / pl.col("moe_blocks")).fill_nan(0).clip(0, 1)
    chunk = pl.col("engine_id").replace_strict(CHUNK_TOKENS, default=SERVER_CHUNK_TOKENS, return_dtype=pl.Int64)
    rows = rows.with_columns(
        device_class=device_class(),
        weight_bits=_weight_bits(),
        dense_bytes=(pl.col("attention_bytes") + pl.col("mlp_bytes") + pl.col("norm_bytes") + _head_bytes()).cast(
            pl.Float64
        ),
        expert_bytes=pl.col("experts_bytes").cast(pl.Float64),
        experts=pl.col("experts").fill_null(0),
        experts_per_token=pl.col("experts_per_token").fill_null(0),
        host_share=host_share,
        host_expert_share=pl.max_horizontal(host_share, host_experts),
        gpus=pl.when(is_layer_split).then(1).otherwise(pl.col("tensor_parallel")).cast(pl.Int64),
        stages=pl.when(is_layer_split).then(pl.col("gpu_count")).otherwise(option["pipeline_parallel"]),
        replicas=option["data_parallel"],
        chunk_tokens=pl.coalesce("n_ubatch", "max_num_batched_tokens", chunk),
    ).with_columns(
        peak_flop_per_s=peak_flop_per_s(),
        attention_flop_per_s=attention_flop_per_s(),
        link_bytes_per_s=(pl.col("interconnect_bytes_per_s") / 2).fill_null(PCIE_BYTES_PER_S),
        heads_per_kv_head=pl.when(is_latent)
        .then(1.0)
        .otherwise(pl.col("attention_heads") / pl.col("kv_heads").clip(1))
        .fill_null(1.0),
        kv_gpus=pl.min_horizontal(
            "gpus",
            pl.when(is_latent).then(1).otherwise(pl.col("kv_heads")).fill_null(1).clip(1),
        ),
    )
    conform(rows.head(0), WORKLOAD_SCHEMA, stage="workload")
    return rows
