"""config.json → Anatomy: one file a family group, found by `model_type`."""

from collections.abc import Mapping
from typing import Any

from fitmart.estimator.anatomy import Anatomy
from fitmart.estimator.architectures import (
    deepseek,
    deepseek_v4,
    encoders,
    gemma,
    gpt_legacy,
    linear_attention,
    llama4,
    llama_like,
    mamba,
    moe,
    nemotron,
    small_states,
    sparse_blocks,
    uneven_heads,
)
from fitmart.estimator.architectures.config import Reads
from fitmart.estimator.architectures.reader import read_anatomy

# Importing a group registers its families.
GROUPS = (
    deepseek,
    deepseek_v4,
    encoders,
    gemma,
    gpt_legacy,
    linear_attention,
    llama4,
    llama_like,
    mamba,
    moe,
    nemotron,
    small_states,
    sparse_blocks,
    uneven_heads,
)


def parse_config(model_id: str, config: Mapping[str, Any], *, quant_config: Mapping[str, Any] | None = None) -> Anatomy:
    """The anatomy that a config.json describes.

    `quant_config`: the side file hf_quant_config.json of ModelOpt repositories. Raises AnatomyError with one line.
    """
    return read_anatomy(model_id, config, Reads(), quant_config)


def fields_read(config: Mapping[str, Any]) -> dict[str, Any]:
    """`config` with exactly the fields that parsing it reads; parsing the result gives the same anatomy."""
    reads = Reads()
    read_anatomy("", config, reads)
    return reads.trim(config)
