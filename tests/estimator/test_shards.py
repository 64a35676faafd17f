"""The fullest GPU's share. Expected values by hand from the shapes; the vLLM ones are what its start-up logs print."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weight_models import DEEPSEEK, GPT_OSS, MISTRAL_7B, MODELS, PRECISIONS, QWEN_3B, QWEN_30B, QWEN_72B

from fitmart.estimator.shards import weight_shards

GIB = 2**30
TOTAL_72B = 145_412_407_296


def share(
    model_id: str, precision_id: str = "bf16", *, tp: int = 1, pp: int = 1, ep: int = 1, backend: str | None = None
) -> dict:
    names = {"model_id": [model_id], "precision_id": [precision_id]}
    wanted = pl.DataFrame(names | {"tensor_parallel": [tp], "pipeline_parallel": [pp], "expert_parallel": [ep]})
    if backend:
        wanted = wanted.with_columns(moe_backend=pl.lit(backend))
    return weight_shards(MODELS.models, MODELS.tensors, PRECISIONS, wanted).row(0, named=True)


def test_one_gpu_holds_everything() -> None:
    assert share(QWEN_72B)["weights_bytes"] == TOTAL_72B


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_norms_and_row_parallel_biases_are_repeated(tp: int) -> None:
    # replicated: 2 norms of 8,192 in 80 layers and the last one; 2 bytes each
    repeated = (2 * 80 + 1) * 8192 * 2
    assert share(QWEN_72B, tp=tp)["weights_bytes"] == (TOTAL_72B - repeated) // tp + repeated


def test_keys_and_values_are_repeated_past_their_heads() -> None:
    # 16 ranks, 8 KV heads: each rank keeps a whole head, 128 rows of k and of v with their biases, in 80 layers
    repeated = (2 * 80 + 1) * 8192 * 2
    keys_values = 2 * 80 * (1024 * 8192 + 1024) * 2
    expected = (TOTAL_72B - repeated - keys_values) // 16 + repeated + keys_values // 8
    assert share(QWEN_72B, tp=16)["weights_bytes"] == expected


def test_vocabulary_is_padded_before_the_cut() -> None:
    # 151,936 = 2,374 × 64: nothing to pad, an eighth each; the embedding is tied, so there is no head
    embedding = 151_936 * 2048 * 2
    whole = share(QWEN_3B)["weights_bytes"]
    assert whole - share(QWEN_3B, tp=2)["weights_bytes"] > embedding // 2


def test_tied_embedding_is_on_the_first_and_the_last_stage() -> None:
    # 36 layers in two stages of 18: each has half of the layers and the embedding; the last also the final norm
    embedding, norm = 151_936 * 2048 * 2, 2048 * 2
    layers = share(QWEN_3B)["weights_bytes"] - embedding - norm
    assert share(QWEN_3B, pp=2)["weights_bytes"] == layers // 2 + embedding + norm


def test_stages_without_a_tied_embedding() -> None:
    head = 152_064 * 8192 * 2
    layers = TOTAL_72B - 2 * head - 8192 * 2
    assert share(QWEN_72B, pp=2)["weights_bytes"] == layers // 2 + head + 8192 * 2


def test_uneven_stages_spare_the_last() -> None:
    # 80 layers on 3: 26 + 27 + 27 would leave the last with the head; vLLM gives 27 + 27 + 26
    head = 152_064 * 8192 * 2
    layer = (TOTAL_72B - 2 * head - 8192 * 2) // 80
    assert share(QWEN_72B, pp=3)["weights_bytes"] == 27 * layer + head


def test_experts_split_whole_or_cut() -> None:
    # an expert: 3 × 768 × 2,048; 128 of them in 48 layers; cut or dealt out, a quarter each
    experts = 128 * 3 * 768 * 2048 * 48 * 2
    cut, dealt = share(QWEN_30B, tp=4)["weights_bytes"], share(QWEN_30B, tp=4, ep=4)["weights_bytes"]
    assert cut == dealt
    assert share(QWEN_30B, tp=1, ep=4)["weights_bytes"] == share(QWEN_30B)["weights_bytes"] - experts * 3 // 4
    # 128 experts on 3 ranks: the fullest has 43
    assert share(QWEN_30B, ep=3)["weights_bytes"] == share(QWEN_30B)["weights_bytes"] - experts // 128 * (128 - 43)


def test_mxfp4_experts_are_padded_by_the_kernel() -> None:
    # 2,880 → 2,944 wide and 3,072 deep (Marlin): 32 experts × 24 layers × 3 matrices, 4.25 bits a weight
    padded, plain = share(GPT_OSS, "native"), share(GPT_OSS, "native", backend="none")
    grown = 32 * 24 * 3 * (2944 * 3072 - 2880 * 2880) * 4.25 / 8
    assert padded["weights_bytes"] - plain["weights_bytes"] == grown
    assert plain["weights_bytes"] == 13_761_264_768


@pytest.mark.parametrize(
    ("model_id", "gib", "tolerance"),
    [
        (MISTRAL_7B, 13.4966, 1e-3),  # "Loading model weights took 13.4966 GB" (GiB), vllm-project/vllm#4229
        (QWEN_3B, 5.79, 1e-2),  # "Model loading took 5.79 GiB", vLLM 0.17.0
    ],
)
def test_vllm_prints_as_much(model_id: str, gib: float, tolerance: float) -> None:
    assert share(model_id)["weights_bytes"] / GIB == pytest.approx(gib, rel=tolerance)


def test_gguf_is_placed_elsewhere() -> None:
    row = share(QWEN_3B, "gguf-q4_k_m")
    assert row["weights_bytes"] is None
    assert row["error"] == "a GGUF file is placed by llama.cpp, layer by layer"


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([QWEN_72B, QWEN_3B, QWEN_30B, DEEPSEEK]),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["native", "awq-int4", "fp8"]),
)
def test_shares_cover_the_model(model_id: str, tp: int, pp: int, precision_id: str) -> None:
    whole = share(model_id, precision_id)["weights_bytes"]
    part = share(model_id, precision_id, tp=tp, pp=pp)["weights_bytes"]
    assert whole <= part * tp * pp
    assert part <= whole
