"""GGUF metadata → the config.json that the family rules read: the converter's renaming, undone.

Source: llama.cpp's conversion scripts (convert_hf_to_gguf.py) and the key names of the `gguf` package.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gguf import LlamaFileType

from fitmart.estimator.architectures.headers_records import Header, HeaderError
from fitmart.estimator.architectures.registry import FAMILIES

Fields = dict[str, Any]
Read = Callable[[Fields, Fields], Fields]
"""(keys without the architecture's prefix, config so far) → fields to add."""

COMMON = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "nextn_predict_layers": "num_nextn_predict_layers",
    "interleave_moe_layer_step": "interleave_moe_layer_step",
    "full_attention_interval": "full_attention_interval",
    "attention.shared_kv_layers": "num_kv_shared_layers",
    "embedding_length_per_layer_input": "hidden_size_per_layer_input",
    "moe_latent_size": "moe_latent_size",
}
# Mechanisms that no rule for an unknown architecture may pass over.
EXOTIC = ("ssm.", "wkv.", "shortconv.", "kda.", "expert_count", "attention.kv_lora_rank", "attention.sliding_window")
SPLITS = "split.count"


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFamily:
    """One GGUF architecture: the model type it stands for, fields that are constant there, and what else to read."""

    model_type: str
    fixed: Fields = field(default_factory=dict)
    read: Read | None = None


def _latent(keys: Fields, config: Fields) -> Fields:
    """MLA: files since 2025 state the widths of the latent as key_length and those of the heads as *_mla."""
    rope = keys.get("rope.dimension_count", 64)
    key = keys.get("attention.key_length_mla", keys.get("attention.key_length"))
    value = keys.get("attention.value_length_mla", keys.get("attention.value_length"))
    if key is None or value is None:
        raise KeyError("attention.key_length")
    return {
        "q_lora_rank": keys.get("attention.q_lora_rank"),
        "kv_lora_rank": keys["attention.kv_lora_rank"],
        "qk_rope_head_dim": rope,
        "qk_nope_head_dim": key - rope,
        "v_head_dim": value,
        "num_key_value_heads": config["num_attention_heads"],
        "index_head_dim": keys.get("attention.indexer.key_length"),
        "index_n_heads": keys.get("attention.indexer.head_count"),
    }


def _mixtral(keys: Fields, config: Fields) -> Fields:
    """The llama architecture with experts is Mixtral."""
    return {"model_type": "mixtral", "sliding_window": None} if config.get("num_experts") else {}


def _llama4(keys: Fields, config: Fields) -> Fields:
    return {
        "intermediate_size_mlp": keys["feed_forward_length"],
        "intermediate_size": keys.get("expert_feed_forward_length", keys["feed_forward_length"]),
        "attention_chunk_size": keys.get("attention.chunk_size", 8192),
    }


def _delta_net(keys: Fields, config: Fields) -> Fields:
    heads = keys["ssm.time_step_rank"]
    return {
        "linear_conv_kernel_dim": keys["ssm.conv_kernel"],
        "linear_key_head_dim": keys["ssm.state_size"],
        "linear_num_key_heads": keys["ssm.group_count"],
        "linear_num_value_heads": heads,
        "linear_value_head_dim": keys["ssm.inner_size"] // heads,
    }


def _mamba(keys: Fields, config: Fields) -> Fields:
    return {
        "state_size": keys["ssm.state_size"],
        "conv_kernel": keys["ssm.conv_kernel"],
        "time_step_rank": keys["ssm.time_step_rank"],
        "intermediate_size": keys["ssm.inner_size"],
        "expand": keys["ssm.inner_size"] // config["hidden_size"],
    }


def _mamba2(keys: Fields, config: Fields) -> Fields:
    """Mamba-2 blocks: the step rank is the number of heads."""
    heads, inner = keys["ssm.time_step_rank"], keys["ssm.inner_size"]
    return {
        "mamba_d_state": keys["ssm.state_size"],
        "mamba_d_conv": keys["ssm.conv_kernel"],
        "mamba_n_groups": keys["ssm.group_count"],
        "mamba_n_heads": heads,
        "mamba_d_head": inner // heads,
        "mamba_d_ssm": inner,
        "mamba_expand": inner // config["hidden_size"],
    }


def _granite_hybrid(keys: Fields, config: Fields) -> Fields:
    return _mamba2(keys, config) | {
        "layer_types": _by_heads(keys, "attention", "mamba"),
        "shared_intermediate_size": keys.get("expert_shared_feed_forward_length", config.get("intermediate_size")),
        "intermediate_size": config.get("moe_intermediate_size") or config.get("intermediate_size"),
        "num_local_experts": config.get("num_experts", 0),
    }


def _lfm2(keys: Fields, config: Fields) -> Fields:
    return {
        "conv_L_cache": keys["shortconv.l_cache"],
        "layer_types": _by_heads(keys, "full_attention", "conv"),
        "block_auto_adjust_ff_dim": False,
        "num_dense_layers": config.get("first_k_dense_replace"),
    }


def _by_heads(keys: Fields, attention: str, other: str) -> list[str]:
    """Hybrids state no KV heads where a layer does not attend."""
    heads = keys["attention.head_count_kv"]
    return [attention if count else other for count in heads]


def _gemma4(keys: Fields, config: Fields) -> Fields:
    """Full layers have heads of their own size; their KV heads stand in the list by layer."""
    slides, heads = keys["attention.sliding_window_pattern"], keys["attention.head_count_kv"]
    by_layer = heads if isinstance(heads, list) else [heads] * len(slides)
    local = next(count for count, is_local in zip(by_layer, slides, strict=False) if is_local)
    whole = next(count for count, is_local in zip(by_layer, slides, strict=False) if not is_local)
    return {
        "num_key_value_heads": local,
        "num_global_key_value_heads": whole if whole != local else None,
        "attention_k_eq_v": whole != local,
        "global_head_dim": keys["attention.key_length"],
        "head_dim": keys.get("attention.key_length_swa", keys["attention.key_length"]),
        "enable_moe_block": bool(config.get("num_experts")),
        "top_k_experts": config.get("num_experts_per_tok"),
    }


def _falcon(keys: Fields, config: Fields) -> Fields:
    kv = config.get("num_key_value_heads", 1)
    return {"new_decoder_architecture": kv > 1, "num_kv_heads": kv, "multi_query": kv == 1}


MLA = GgufFamily(model_type="deepseek_v3", read=_latent)
GGUF_FAMILIES: Mapping[str, GgufFamily] = {
    "llama": GgufFamily(model_type="llama", read=_mixtral),
    "llama4": GgufFamily(model_type="llama4_text", read=_llama4),
    "mistral3": GgufFamily(model_type="ministral3", fixed={"sliding_window": None}),
    "qwen2": GgufFamily(model_type="qwen2"),
    "qwen2vl": GgufFamily(model_type="qwen2"),
    "qwen2moe": GgufFamily(model_type="qwen2_moe"),
    "qwen3": GgufFamily(model_type="qwen3"),
    "qwen3vl": GgufFamily(model_type="qwen3"),
    "qwen3moe": GgufFamily(model_type="qwen3_moe"),
    "qwen3vlmoe": GgufFamily(model_type="qwen3_moe"),
    "qwen3next": GgufFamily(model_type="qwen3_next", fixed={"num_nextn_predict_layers": 0}, read=_delta_net),
    "qwen35": GgufFamily(model_type="qwen3_5_text", read=_delta_net),
    "qwen35moe": GgufFamily(model_type="qwen3_5_moe_text", read=_delta_net),
    "gemma": GgufFamily(model_type="gemma"),
    "gemma2": GgufFamily(model_type="gemma2"),
    "gemma3": GgufFamily(model_type="gemma3_text"),
    "gemma3n": GgufFamily(model_type="gemma3n_text"),
    "gemma4": GgufFamily(model_type="gemma4_text", read=_gemma4),
    "phi2": GgufFamily(model_type="phi"),
    "phi3": GgufFamily(model_type="phi3"),
    "phimoe": GgufFamily(model_type="phimoe"),
    "deepseek2": MLA,
    "glm-dsa": GgufFamily(model_type="glm_moe_dsa", read=_latent),
    "minicpm3": GgufFamily(model_type="minicpm3", read=_latent),
    "deepseek": GgufFamily(model_type="deepseek"),
    "glm4": GgufFamily(model_type="glm4"),
    "glm4moe": GgufFamily(model_type="glm4_moe"),
    "gpt-oss": GgufFamily(model_type="gpt_oss"),
    "command-r": GgufFamily(model_type="cohere"),
    "cohere2": GgufFamily(model_type="cohere2"),
    "falcon": GgufFamily(model_type="falcon", read=_falcon),
    "starcoder2": GgufFamily(model_type="starcoder2"),
    "stablelm": GgufFamily(model_type="stablelm"),
    "granite": GgufFamily(model_type="granite"),
    "granitemoe": GgufFamily(model_type="granitemoe"),
    "granitehybrid": GgufFamily(model_type="granitemoehybrid", read=_granite_hybrid),
    "lfm2": GgufFamily(model_type="lfm2", read=_lfm2),
    "lfm2moe": GgufFamily(model_type="lfm2_moe", read=_lfm2),
    "mamba": GgufFamily(model_type="mamba", read=_mamba),
    "falcon-h1": GgufFamily(model_type="falcon_h1", read=_mamba2),
    "olmo": GgufFamily(model_type="olmo"),
    "olmo2": GgufFamily(model_type="olmo2"),
    "olmoe": GgufFamily(model_type="olmoe"),
    "exaone": GgufFamily(model_type="exaone"),
    "exaone4": GgufFamily(model_type="exaone4"),
    "seed_oss": GgufFamily(model_type="seed_oss"),
    "smollm3": GgufFamily(model_type="smollm3"),
    "ernie4_5": GgufFamily(model_type="ernie4_5"),
    "ernie4_5-moe": GgufFamily(model_type="ernie4_5_moe"),
    "dots1": GgufFamily(model_type="dots1"),
    "bailingmoe2": GgufFamily(model_type="bailing_moe"),
    "minimax-m2": GgufFamily(model_type="minimax_m2"),
    "hunyuan-dense": GgufFamily(model_type="hunyuan_v1_dense"),
    "hunyuan-moe": GgufFamily(model_type="hunyuan_v1_moe"),
    "internlm2": GgufFamily(model_type="internlm2"),
    "minicpm": GgufFamily(model_type="minicpm"),
    "baichuan": GgufFamily(model_type="baichuan"),
    "xverse": GgufFamily(model_type="xverse"),
    "nemotron": GgufFamily(model_type="nemotron"),
    "arcee": GgufFamily(model_type="arcee"),
    "apertus": GgufFamily(model_type="apertus"),
    "gpt2": GgufFamily(model_type="gpt2"),
    "gptneox": GgufFamily(model_type="gpt_neox"),
    "bloom": GgufFamily(model_type="bloom"),
    "bert": GgufFamily(model_type="bert"),
}


def gguf_config(model_id: str, headers: Sequence[Header]) -> Fields:
    """The config that the metadata of a GGUF (of all its splits) amounts to. HeaderError where that cannot be told."""
    metadata = _merged(headers)
    arch = metadata.get("general.architecture")
    if not isinstance(arch, str):
        raise HeaderError(f"{model_id}: the GGUF names no general.architecture")
    _require_all_splits(model_id, metadata, headers)
    keys = {key.removeprefix(f"{arch}."): value for key, value in metadata.items() if key.startswith(f"{arch}.")}
    known = GGUF_FAMILIES.get(arch)
    if known is None and arch not in FAMILIES:
        exotic = next((key for key in keys if key.startswith(EXOTIC)), None)
        if exotic or "attention.head_count" not in keys:
            why = f"{arch}.{exotic} is no plain decoder's" if exotic else "it states no attention heads"
            raise HeaderError(f"{model_id}: GGUF architecture {arch!r} has no rules, and {why}: its caches are unknown")
    family = known or GgufFamily(model_type=arch)
    config = {"model_type": family.model_type} | _common(keys) | _of_tensors(headers) | _rope(keys)
    try:
        config |= family.read(keys, config) if family.read else {}
    except (KeyError, TypeError, StopIteration, ZeroDivisionError) as error:
        raise HeaderError(f"{model_id}: the GGUF's metadata lacks what {arch} needs ({error or 'heads'})") from None
    # Prediction layers are counted among the blocks.
    if isinstance(count := config.get("num_nextn_predict_layers"), int):
        config["num_hidden_layers"] -= count
    return config | family.fixed


def gguf_precision(headers: Sequence[Header]) -> str:
    """The precision id: the file type that the quantizer wrote, else the type of most elements."""
    number = _merged(headers).get("general.file_type")
    if isinstance(number, int) and number in set(LlamaFileType) and number != LlamaFileType.GUESSED:
        return f"gguf-{LlamaFileType(number).name.lower().removeprefix('mostly_').removeprefix('all_')}"
    counts: dict[str, int] = {}
    for header in headers:
        for tensor in header.tensors:
            counts[tensor.dtype] = counts.get(tensor.dtype, 0) + tensor.stored_bytes
    return f"gguf-{max(counts, key=lambda kind: counts[kind]).lower()}"


def _merged(headers: Sequence[Header]) -> Fields:
    """The metadata of all splits; the first to state a key wins."""
    merged: Fields = {}
    for header in headers:
        merged = dict(header.metadata) | merged
    return merged


def _require_all_splits(model_id: str, metadata: Fields, headers: Sequence[Header]) -> None:
    count = metadata.get(SPLITS, 1)
    if isinstance(count, int) and count > len(headers):
        raise HeaderError(f"{model_id}: {len(headers)} of the GGUF's {count} parts are there")


def _common(keys: Fields) -> Fields:
    """What every architecture states, under config.json's names; equal values by layer as one."""
    config: Fields = {}
    for key, name in COMMON.items():
        value = keys.get(key)
        if value is not None and not (key == "expert_count" and value == 0):
            config[name] = _one(value)
    pattern = keys.get("attention.sliding_window_pattern")
    if isinstance(pattern, list):
        config["layer_types"] = ["sliding_attention" if flag else "full_attention" for flag in pattern]
    return config


def _one(value: Any) -> Any:
    """One number where a list by layer says the same everywhere (or nothing: 0)."""
    if not isinstance(value, list):
        return value
    stated = sorted({item for item in value if item})
    return stated[0] if len(stated) == 1 else value


def _of_tensors(headers: Sequence[Header]) -> Fields:
    shapes = {tensor.name: tensor.shape for header in headers for tensor in header.tensors}
    embedding = shapes.get("token_embd.weight")
    tied = {"tie_word_embeddings": "output.weight" not in shapes}
    return tied | ({"vocab_size": embedding[0]} if embedding else {})


def _rope(keys: Fields) -> Fields:
    if keys.get("rope.scaling.type") != "yarn":
        return {}
    scaling = {
        "rope_type": "yarn",
        "factor": keys.get("rope.scaling.factor", 1.0),
        "original_max_position_embeddings": keys.get("rope.scaling.original_context_length"),
    }
    return {"rope_scaling": scaling}
