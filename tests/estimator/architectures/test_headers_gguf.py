"""GGUF headers → anatomy: headers written by hand, caches as published."""

import struct

import pytest

from fitmart.estimator.anatomy import AnatomyError
from fitmart.estimator.architectures.headers import anatomy_from_headers
from fitmart.estimator.architectures.headers_gguf import read_gguf
from fitmart.estimator.architectures.headers_records import Header, HeaderError, StoredTensor


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(pairs: bytes, count: int, tensors: bytes = b"", tensor_count: int = 0, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensor_count, count) + pairs + tensors


def read(content: bytes, file_bytes: int | None = None) -> Header:
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        if at + count > len(content):
            raise HeaderError("g: cut short")
        at += count
        return content[at - count : at]

    return read_gguf(take, file="g", file_bytes=file_bytes)


def test_a_q4_k_row_is_144_bytes_for_256_values():
    tensor = text("blk.0.ffn_up.weight") + struct.pack("<IQQIQ", 2, 512, 3, 12, 0)
    found = read(gguf(b"", 0, tensor, 1)).tensors
    assert found == (StoredTensor("blk.0.ffn_up.weight", "Q4_K", (3, 512), 3 * 2 * 144),)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"GGML", "not a GGUF file"),
        (gguf(b"", 0, version=1), "version 1 is not one of"),
        (gguf(b"", 2**40), "key-value pairs: broken"),
        (gguf(text("k") + struct.pack("<I", 99), 1), "unknown kind of value 99"),
        (gguf(text("k") + struct.pack("<IQ", 8, 2**60), 1), "bytes of a text: broken"),
        (gguf(b"", 0, text("t") + struct.pack("<IQQIQ", 2, 256, 3, 9999, 0), 1), "unknown ggml type 9999"),
        (gguf(b"", 0, text("t") + struct.pack("<IQQIQ", 2, 100, 3, 12, 0), 1), "not whole blocks of Q4_K"),
        (gguf(b"", 1), "cut short"),
    ],
)
def test_broken_gguf_headers_are_one_line(content, reason):
    with pytest.raises(HeaderError, match=reason):
        read(content)


def test_a_gguf_shorter_than_its_tensors_is_cut_short():
    tensor = text("t") + struct.pack("<IQIQ", 1, 32, 0, 64)
    content = gguf(b"", 0, tensor, 1)  # 32 F32 at offset 64 behind the header padded to 32 bytes
    end = -(-len(content) // 32) * 32 + 64 + 128
    assert read(content, end).tensors[0].stored_bytes == 128
    with pytest.raises(HeaderError, match=f"its tensors end at byte {end}"):
        read(content, end - 1)


def gguf_header(arch: str, pairs: dict, *names: str) -> Header:
    tensors = tuple(StoredTensor(name, "F16", (1000, 64), 128_000) for name in ("token_embd.weight", *names))
    metadata = {"general.architecture": arch} | {f"{arch}.{key}": value for key, value in pairs.items()}
    return Header(container="gguf", tensors=tensors, metadata=metadata)


BASIC = {"block_count": 4, "embedding_length": 64, "feed_forward_length": 256, "attention.head_count": 8}


@pytest.mark.parametrize(
    ("arch", "pairs", "reason"),
    [
        ("rwkv7", {"block_count": 4, "embedding_length": 64}, "'rwkv7' has no rules, and it states no attention heads"),
        ("newssm", BASIC | {"ssm.state_size": 16}, r"newssm\.ssm\.state_size is no plain decoder's"),
        ("deepseek2", BASIC, r"lacks what deepseek2 needs"),
        ("qwen2", {k: v for k, v in BASIC.items() if k != "embedding_length"}, "the GGUF's metadata lacks hidden_size"),
        ("llama", BASIC | {"attention.head_count_kv": "x"}, "num_key_value_heads is 'x'"),
    ],
)
def test_a_gguf_whose_caches_cannot_be_known_says_why(arch, pairs, reason):
    with pytest.raises((HeaderError, AnatomyError), match=reason):
        anatomy_from_headers("g", [gguf_header(arch, pairs)], None)


def test_an_unknown_but_plain_gguf_is_read_as_a_decoder_and_marked():
    anatomy = anatomy_from_headers("g", [gguf_header("newdense", BASIC | {"attention.head_count_kv": 2})], None)
    assert anatomy.facts.anatomy_basis == "assumed"
    assert anatomy.caches[0].elements_per_token == 2 * (8 + 8)


def test_a_part_of_a_split_gguf_is_not_taken_for_the_whole():
    part = gguf_header("llama", BASIC)
    part = Header(container="gguf", tensors=part.tensors, metadata=dict(part.metadata) | {"split.count": 3})
    with pytest.raises(HeaderError, match="1 of the GGUF's 3 parts"):
        anatomy_from_headers("g", [part], None)


# What llama.cpp's converter writes for published configs, and what their authors publish or measured about the cache.
GGUF_CACHES = [
    # Llama-3.1-8B: 32 layers × 8 heads × 128 × 2
    ("llama", {"block_count": 32, "embedding_length": 4096, "feed_forward_length": 14336, "attention.head_count": 32,
               "attention.head_count_kv": 8, "attention.key_length": 128}, {"full": (32, 2048, None)}),
    # Gemma-3-27B: every sixth of 62 layers is full, the others slide over 1024
    ("gemma3", {"block_count": 62, "embedding_length": 5376, "feed_forward_length": 21504, "attention.head_count": 32,
                "attention.head_count_kv": 16, "attention.key_length": 128, "attention.sliding_window": 1024},
     {"full": (10, 4096, None), "sliding": (52, 4096, 1024)}),
    # gpt-oss-20b: every second of 24 layers slides over 128
    ("gpt-oss", {"block_count": 24, "embedding_length": 2880, "feed_forward_length": 2880, "attention.head_count": 64,
                 "attention.head_count_kv": 8, "attention.key_length": 64, "attention.sliding_window": 128,
                 "expert_count": 32, "expert_used_count": 4, "expert_feed_forward_length": 2880},
     {"full": (12, 1024, None), "sliding": (12, 1024, 128)}),
    # DeepSeek-V3: 61 layers × (512 + 64), as files since 2025 state it
    ("deepseek2", {"block_count": 61, "embedding_length": 7168, "feed_forward_length": 18432,
                   "attention.head_count": 128, "attention.head_count_kv": 1, "attention.key_length": 576,
                   "attention.value_length": 512, "attention.key_length_mla": 192, "attention.value_length_mla": 128,
                   "attention.q_lora_rank": 1536, "attention.kv_lora_rank": 512, "rope.dimension_count": 64,
                   "expert_count": 256, "expert_used_count": 8, "expert_feed_forward_length": 2048,
                   "expert_shared_count": 1, "leading_dense_block_count": 3}, {"mla": (61, 576, None)}),
    # GLM-4.5-Air: 46 layers and a prediction layer counted with them
    ("glm4moe", {"block_count": 47, "nextn_predict_layers": 1, "embedding_length": 4096, "feed_forward_length": 10944,
                 "attention.head_count": 96, "attention.head_count_kv": 8, "attention.key_length": 128,
                 "expert_count": 128, "expert_used_count": 8, "expert_feed_forward_length": 1408,
                 "expert_shared_count": 1, "leading_dense_block_count": 1}, {"full": (46, 2048, None)}),
    # Qwen3-Next-80B: every fourth of 48 layers attends, 2 heads of 256
    ("qwen3next", {"block_count": 48, "embedding_length": 2048, "feed_forward_length": 5120, "attention.head_count": 16,
                   "attention.head_count_kv": 2, "attention.key_length": 256, "full_attention_interval": 4,
                   "expert_count": 512, "expert_used_count": 10, "expert_feed_forward_length": 512,
                   "expert_shared_feed_forward_length": 512, "ssm.conv_kernel": 4, "ssm.state_size": 128,
                   "ssm.group_count": 16, "ssm.time_step_rank": 32, "ssm.inner_size": 4096},
     {"full": (12, 1024, None), "linear_state": (36, 0, None), "conv_state": (36, 0, None)}),
    # LFM2-1.2B: 6 of 16 layers attend
    ("lfm2", {"block_count": 16, "embedding_length": 2048, "feed_forward_length": 8192, "attention.head_count": 32,
              "attention.head_count_kv": [0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0], "shortconv.l_cache": 3},
     {"full": (6, 1024, None), "conv_state": (10, 0, None)}),
]  # fmt: skip


@pytest.mark.parametrize(("arch", "pairs", "caches"), GGUF_CACHES, ids=[arch for arch, *_ in GGUF_CACHES])
def test_gguf_metadata_give_the_caches_of_the_family(arch, pairs, caches):
    anatomy = anatomy_from_headers("g", [gguf_header(arch, pairs | {"context_length": 8192})], None)
    found = {c.kind: (len(c.layers), c.elements_per_token, c.window_tokens) for c in anatomy.caches}
    assert found == caches
    assert anatomy.facts.max_context_tokens == 8192
    assert anatomy.facts.native_precision == "gguf-f16"


def test_the_state_of_a_recurrent_layer_is_the_published_one():
    """Qwen3-Next: 32 heads × 128 × 128 and (2 × 16 × 128 + 32 × 128) × 3."""
    _, pairs, _ = next(case for case in GGUF_CACHES if case[0] == "qwen3next")
    caches = {c.kind: c for c in anatomy_from_headers("g", [gguf_header("qwen3next", pairs)], None).caches}
    assert caches["linear_state"].fixed_elements == 32 * 128 * 128
    assert caches["conv_state"].fixed_elements == 8192 * 3
