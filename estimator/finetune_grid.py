"""The fine-tuning grid: the questions people ask, for every model, with the smallest GPU that holds each."""

import polars as pl

from fitmart.estimator.finetune import DEFAULT_RANK, finetune, with_smallest_gpu
from fitmart.estimator.reference import Models, Reference

# method, optimizer: full training with fp32 states and pure bf16; adapters with the optimizer usual for each.
RECIPES = (("full", "adamw"), ("full", "adamw-bf16"), ("lora", "adamw"), ("qlora", "paged-adamw-8bit"))
SEQUENCES = (2048, 8192)
GPU_COUNTS = (1, 2, 4, 8)

_PARTS = {
    "weights_bytes": "finetune_weights_bytes",
    "adapter_bytes": "finetune_adapter_bytes",
    "gradients_bytes": "finetune_gradients_bytes",
    "optimizer_bytes": "finetune_optimizer_bytes",
    "activation_bytes": "finetune_activation_bytes",
    "logits_bytes": "finetune_logits_bytes",
    "overhead_bytes": "finetune_overhead_bytes",
    "total_bytes": "finetune_bytes",
}


def finetune_rows(models: Models, reference: Reference) -> pl.DataFrame:
    """Rows of the mart `finetune`: one sequence a GPU, checkpointed, rank 16, ZeRO-3 over several GPUs.

    A model that a method cannot train (its error in `finetune`) has no row of it.
    """
    recipes = pl.DataFrame(RECIPES, schema={"method": pl.String, "optimizer": pl.String}, orient="row")
    wanted = (
        models.models.select("model_id")
        .join(recipes, how="cross")
        .join(pl.DataFrame({"sequence_tokens": SEQUENCES}, schema={"sequence_tokens": pl.Int64}), how="cross")
        .join(pl.DataFrame({"gpu_count": GPU_COUNTS}, schema={"gpu_count": pl.Int64}), how="cross")
        .with_columns(
            lora_rank=pl.lit(DEFAULT_RANK, pl.Int64),
            batch=pl.lit(1, pl.Int64),
            is_checkpointed=pl.lit(value=True),
            sharding=pl.lit(None, pl.String),
        )
    )
    rows = finetune(models.models, models.tensors, wanted).filter(pl.col("error").is_null())
    is_full = pl.col("method") == "full"
    trainable = pl.col("vendor").is_in(["NVIDIA", "AMD"]) & ~pl.col("is_unified_memory")
    rows = with_smallest_gpu(rows, reference.gpus.filter(trainable & (pl.col("device_count") == 1)))
    return rows.rename({old: new for new, old in _PARTS.items()}).select(
        "model_id", "method", "optimizer", "sequence_tokens", "gpu_count", *_PARTS,
        lora_rank=pl.when(~is_full).then("lora_rank"),
        batch="batch",
        is_checkpointed="is_checkpointed",
        smallest_gpu_id="smallest_gpu_id",
    )  # fmt: skip
