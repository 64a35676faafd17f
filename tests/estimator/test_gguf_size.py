"""File sizes against files on huggingface.co (bytes where the file page shows them, else as the card prints)."""

import pytest
from weight_models import (
    DEEPSEEK,
    GPT_OSS,
    LLAMA_2_7B,
    LLAMA_8B,
    MISTRAL_7B,
    MIXTRAL,
    QWEN_3B,
    QWEN_30B,
    QWEN_72B,
    size,
)


@pytest.mark.parametrize(
    ("model_id", "precision_id", "version", "file_bytes"),
    [
        (LLAMA_2_7B, "gguf-q2_k", "b1600", 2_825_940_672),  # TheBloke/Llama-2-7B-GGUF
        (LLAMA_2_7B, "gguf-q4_0", "b1600", 3_825_807_040),
        (LLAMA_2_7B, "gguf-q4_k_m", "b1600", 4_081_004_224),
        (LLAMA_2_7B, "gguf-q8_0", "b1600", 7_161_089_728),
        (MISTRAL_7B, "gguf-q4_k_m", "2023-12", 4_368_439_584),  # TheBloke/Mistral-7B-Instruct-v0.2-GGUF
        (MIXTRAL, "gguf-q4_k_m", "2023-12", 26_441_533_376),  # TheBloke/Mixtral-8x7B-v0.1-GGUF
        (LLAMA_8B, "gguf-q4_k_m", "2024-07", 4_920_734_272),  # bartowski/Meta-Llama-3.1-8B-Instruct-GGUF
        (LLAMA_8B, "gguf-bf16", "2024-07", 16_068_891_456),
        (QWEN_30B, "gguf-q4_k_m", "2025-05", 18_556_685_856),  # Qwen/Qwen3-30B-A3B-GGUF
        (QWEN_72B, "gguf-q4_k_m", "2024-09", 47.42e9),  # bartowski/Qwen2.5-72B-Instruct-GGUF
        (DEEPSEEK, "gguf-q8_0", "2025-01", 713.3e9),  # unsloth/DeepSeek-V3-GGUF
        (GPT_OSS, "gguf-mxfp4_moe", None, 12_109_566_560),  # ggml-org/gpt-oss-20b-GGUF
    ],
)
def test_published_file(model_id: str, precision_id: str, version: str | None, file_bytes: float) -> None:
    row = size(model_id, precision_id, version)
    assert row["file_bytes"] == pytest.approx(file_bytes, rel=1e-3)
    assert row["basis"] == "derived"


def test_header_is_more_than_the_tensors() -> None:
    row = size(LLAMA_2_7B, "gguf-q4_k_m", "b1600")
    # 32,000 SentencePiece tokens and 291 tensors: three quarters of a megabyte
    assert row["file_bytes"] - row["weights_total_bytes"] == pytest.approx(0.74e6, rel=0.05)


def test_publishers_choice_is_typical_with_a_band() -> None:
    row = size(QWEN_72B, "gguf-ud-q2_k_xl")
    assert row["basis"] == "typical"
    assert row["file_bytes_low"] < row["file_bytes"] < row["file_bytes_high"]


def test_mixture_may_come_from_a_recipe() -> None:
    row = size(QWEN_30B, "gguf-q3_k_m", "2025-05")
    assert row["basis"] == "derived"
    assert row["file_bytes_low"] < row["file_bytes"] < row["file_bytes_high"]


def test_second_copy_of_a_tied_head() -> None:
    # 151,936 × 2,048 in Q6_K: the publisher of Qwen2.5-3B-Instruct-GGUF writes the head again
    copy = 151_936 * 2048 // 256 * 210
    plain, copied = size(QWEN_3B, "gguf-q4_k_m", "b4500", True), size(QWEN_3B, "gguf-q4_k_m", "b4500", False)
    assert copied["lm_head_bytes"] == copy
    assert plain["lm_head_bytes"] == 0
    assert copied["file_bytes"] == pytest.approx(2.10e9, rel=5e-3)  # Qwen/Qwen2.5-3B-Instruct-GGUF
