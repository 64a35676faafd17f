"""The frames at each stage's border: their columns, dtypes, and the check of them.

Bytes, counts and tokens are Int64 (unsigned arithmetic wraps silently), rates Float64, ids String.
"""

import polars as pl
from polars._typing import PolarsDataType


class FrameError(ValueError):
    """A frame that lacks a column of its stage, or holds one of another type: a programming error."""


def schema(**columns: PolarsDataType) -> pl.Schema:
    """Columns in order, as keyword arguments."""
    return pl.Schema(columns)


def conform(frame: pl.DataFrame, want: pl.Schema, *, stage: str) -> pl.DataFrame:
    """`frame` with exactly the columns of `want`, in that order; a missing or mistyped column raises FrameError."""
    for name, dtype in want.items():
        if name not in frame.columns:
            raise FrameError(f"{stage}: column {name} is missing")
        if frame.schema[name] != dtype and frame.schema[name] != pl.Null:
            raise FrameError(f"{stage}: column {name} is {frame.schema[name]}, not {dtype}")
    return frame.select(pl.col(name).cast(dtype) for name, dtype in want.items())


# How a format id applies to each part of a model (warehouse/seeds/precision.csv; the format ids are formats.py's).
PRECISION_SCHEMA = schema(
    precision_id=pl.String,
    precision_class=pl.String,  # bf16, fp8, int8, int4, … : what the pages compare, whichever engine runs it
    container=pl.String,  # hf, gguf, mlx, exl: whose rules choose each tensor's format
    engine_id=pl.String,  # the engine that runs it by default
    linear_format=pl.String,  # attention and mlp matrices
    experts_format=pl.String,  # routed experts
    embedding_format=pl.String,
    lm_head_format=pl.String,
    other_format=pl.String,  # norms, router, vision, audio, convolutions
    bits_per_weight=pl.Float64,  # nominal, of linear_format
    is_in_grid=pl.Boolean,
)

GPU_SCHEMA = schema(
    gpu_id=pl.String,
    name=pl.String,
    vendor=pl.String,
    gpu_architecture=pl.String,
    form_factor=pl.String,
    memory_bytes=pl.Int64,  # what the driver shows (nvidia-smi: total)
    torch_memory_bytes=pl.Int64,  # what the CUDA/HIP runtime gives to torch: what vLLM budgets
    marketed_memory_gb=pl.Float64,
    memory_type=pl.String,  # HBM3, GDDR6X, LPDDR5X, …
    bandwidth_bytes_per_s=pl.Float64,
    fp32_flop_per_s=pl.Float64,
    fp16_flop_per_s=pl.Float64,
    bf16_flop_per_s=pl.Float64,
    fp8_flop_per_s=pl.Float64,
    fp4_flop_per_s=pl.Float64,
    int8_op_per_s=pl.Float64,
    tdp_w=pl.Float64,
    interconnect_bytes_per_s=pl.Float64,
    is_unified_memory=pl.Boolean,
    addressable_share=pl.Float64,
    max_gpu_count=pl.Int64,
    purchase_usd=pl.Float64,
    compute_capability=pl.String,
    device_count=pl.Int64,  # devices that the runtime sees in one card; memory and rates are the card's
)

# One configuration to answer for; null = the engine's own default for that device, version and usage.
# The grid and the scenarios both arrive here, so there is one path through the engines.
DEPLOYMENT_SCHEMA = schema(
    row=pl.Int64,  # unique; answers come back by it
    model_id=pl.String,
    precision_id=pl.String,
    engine_id=pl.String,
    engine_version=pl.String,
    engine_core=pl.String,  # v0, v1
    usage=pl.String,  # server, offline
    gpu_id=pl.String,
    device_memory_bytes=pl.Int64,
    gpu_count=pl.Int64,
    tensor_parallel=pl.Int64,
    pipeline_parallel=pl.Int64,
    data_parallel=pl.Int64,
    context_tokens=pl.Int64,  # max_model_len; llama.cpp: n_ctx
    kv_cache_dtype=pl.String,  # bf16, f16, fp8, q8_0, … or K/V
    gpu_memory_utilization=pl.Float64,
    max_num_batched_tokens=pl.Int64,
    max_num_seqs=pl.Int64,
    enforce_eager=pl.Boolean,
    flash_attention=pl.Boolean,
    n_ubatch=pl.Int64,
    n_parallel=pl.Int64,
    n_gpu_layers=pl.Int64,
    n_cpu_moe=pl.Int64,
    imatrix=pl.Boolean,
    speculative=pl.String,
)

# What an engine module answers, one row a deployment. All bytes are those of one GPU (the fullest) unless said.
ENGINE_MEMORY_SCHEMA = schema(
    row=pl.Int64,
    engine_version_used=pl.String,
    weights_bytes=pl.Int64,
    activation_bytes=pl.Int64,
    non_torch_bytes=pl.Int64,
    cuda_graph_bytes=pl.Int64,
    compute_buffer_bytes=pl.Int64,
    budget_bytes=pl.Int64,  # what the engine may use
    kv_available_bytes=pl.Int64,  # budget - weights - activation - non-torch - graphs; may be negative
    kv_available_bytes_low=pl.Int64,
    kv_available_bytes_high=pl.Int64,
    kv_block_bytes=pl.Int64,  # bytes of one allocation block (llama.cpp: 1)
    sequence_kv_bytes=pl.Int64,  # one sequence of context_tokens, in whole blocks, at the deployment's KV dtype
    kv_tokens=pl.Int64,  # as that version prints it
    kv_cache_bytes=pl.Int64,  # reserved for this deployment, all GPUs
    users=pl.Int64,  # sequences of context_tokens that fit at once
    fit_context_tokens=pl.Int64,  # longest context of one user
    required_bytes=pl.Int64,  # needed for one user, all GPUs
    required_bytes_low=pl.Int64,
    required_bytes_high=pl.Int64,
    taken_bytes=pl.Int64,  # what the engine grabs, all GPUs
    limited_by=pl.String,  # weights, kv_cache, context, tp_divisibility, unsupported, unknown; null: it starts
)

# The weights of one model at one precision, whole. The parts add up to weights_total_bytes, except that the vision
# and audio towers of a GGUF are a file of their own (mmproj): vision_bytes then stands beside the total.
FOOTPRINT_SCHEMA = schema(
    model_id=pl.String,
    precision_id=pl.String,
    engine_version=pl.String,  # as asked; picks the era of llama.cpp's rules, else unused
    imatrix=pl.Boolean,  # as asked
    weights_total_bytes=pl.Int64,  # in memory
    file_bytes=pl.Int64,  # on disk
    file_bytes_low=pl.Int64,  # 80 % band; equal to file_bytes where a rule decides
    file_bytes_high=pl.Int64,
    embedding_bytes=pl.Int64,
    attention_bytes=pl.Int64,
    mlp_bytes=pl.Int64,
    experts_bytes=pl.Int64,
    norm_bytes=pl.Int64,  # norms and routers
    lm_head_bytes=pl.Int64,
    vision_bytes=pl.Int64,  # vision and audio
    basis=pl.String,  # stored, derived, typical, assumed
    error=pl.String,  # why there is no figure
)

# The fullest GPU's share of the weights.
WEIGHT_SHARD_SCHEMA = schema(
    model_id=pl.String,
    precision_id=pl.String,
    tensor_parallel=pl.Int64,
    pipeline_parallel=pl.Int64,
    expert_parallel=pl.Int64,
    weights_bytes=pl.Int64,
    error=pl.String,
)

# The tensors of a GGUF file: one row for the layers of a tensor that have the same type.
GGUF_TENSOR_SCHEMA = schema(
    model_id=pl.String,
    precision_id=pl.String,
    engine_version=pl.String,
    imatrix=pl.Boolean,
    component=pl.String,
    role=pl.String,  # llama.cpp's tensor name without blk.N. and .weight: attn_v, ffn_down_exps, token_embd, output
    tensor=pl.String,  # the checkpoint's name it comes from
    layer_ids=pl.List(pl.Int32),  # empty: exists once, outside the layers
    ggml_type=pl.String,
    rows=pl.Int64,
    columns=pl.Int64,  # row length, along which blocks run
    copies=pl.Int64,  # experts of a stack
    layer_bytes=pl.Int64,  # of one layer, all copies
    total_bytes=pl.Int64,
)
