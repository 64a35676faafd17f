"""The bundled tables an estimate leans on, as the estimator wants them."""

from functools import cache

from fitmart.estimator.frames import GPU_SCHEMA, PRECISION_SCHEMA, conform
from fitmart.estimator.reference import Reference
from fitmart.estimator.speed import widen
from fitmart.estimator.support import expand
from fitmart.warehouse.snapshot import read_seed, seed_names

RULE_PREFIXES = ("vllm_", "llamacpp_", "gguf_", "mlx_", "server_", "speed_era")
_ENGINES = "engine"  # newest known versions


@cache
def load_reference() -> Reference:
    """GPUs that are released, precisions, support, the engines' rules and the speed factors, from the seeds."""
    gpus = read_seed("gpu").filter("is_released")
    return Reference(
        gpus=conform(gpus, GPU_SCHEMA, stage="gpu"),
        precisions=conform(read_seed("precision"), PRECISION_SCHEMA, stage="precision"),
        support=expand(read_seed("engine_support"), gpus),
        rules={name: read_seed(name) for name in seed_names() if name.startswith(RULE_PREFIXES) or name == _ENGINES},
        coefficients=widen(read_seed("speed_coefficient")),
    )
