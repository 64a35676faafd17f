"""The build: figures from outside, private models, rejected rows, and that nothing changed means nothing done."""

import shutil
from contextlib import closing

import pytest

from fitmart.flows.build import build
from fitmart.warehouse.connection import connect
from fitmart.warehouse.publish import build_ids

SMALL = ("Qwen/Qwen2.5-72B-Instruct", "deepseek-ai/DeepSeek-V3", "BAAI/bge-m3", "acme/*")


def ask(data_dir, sql):
    with closing(connect(data_dir)) as con:
        return con.execute(sql).fetchall()


QWEN, DEEPSEEK = "Qwen/Qwen2.5-72B-Instruct", "deepseek-ai/DeepSeek-V3"
AT_8K = "context_tokens = 8192 AND kv_precision = 'bf16'"


@pytest.mark.parametrize(
    ("model_id", "figure", "table", "where", "value"),
    [
        # the safetensors index of Qwen2.5-72B-Instruct: 145,412,407,296 bytes of bf16
        (QWEN, "params_total", "model", "true", 72_706_203_648),
        (QWEN, "weights_total_bytes", "footprint", "precision_id = 'bf16'", 145_412_407_296),
        # 2 × 80 layers × 8 heads × 128 × 2 B × 8,192 tokens
        (QWEN, "minimum_bytes", "kv_cache", AT_8K, 2_684_354_560),
        # 61 layers × (512 + 64) × 2 B × 8,192 tokens: one latent, whatever the heads
        (DEEPSEEK, "minimum_bytes", "kv_cache", AT_8K, 575_668_224),
        # 72,706,203,648 less 40 layers of 877,684,736 parameters
        ("acme/half", "params_total", "model", "true", 37_598_814_208),
        # an encoder keeps no cache
        ("BAAI/bge-m3", "minimum_bytes", "kv_cache", AT_8K, 0),
    ],
)
def test_figures(built, model_id, figure, table, where, value):
    assert ask(built[0], f"SELECT {figure} FROM {table} WHERE model_id = '{model_id}' AND {where}") == [(value,)]


def test_every_released_accelerator_is_in_the_grid(built):
    assert ask(built[0], "SELECT count(DISTINCT gpu_id) >= 155 FROM fit") == [(True,)]


def test_what_cannot_be_read_is_a_row_with_its_reason(built):
    reasons = [f"{raw} {why}" for raw, why in ask(built[0], "SELECT raw_text, reason FROM rejected")]
    for name, words in {
        "broken": "is not JSON",
        "no-layers": "num_hidden_layers",
        "words": "eight thousand",
        "negative": "-1",
        "absurd": "1000000000",
        "unknown": "flux-capacitor",
    }.items():
        (reason,) = [r for r in reasons if name in r and "acme" in r]
        assert words in reason
        assert "Traceback" not in reason
    assert ask(built[0], "SELECT count(*) FROM model WHERE model_id LIKE 'acme/%'") == [(1,)]


def test_a_card_of_two_devices_is_two_gpus(built):
    # MI250: 128 GB on two devices of 64; 72 B parameters at 8 bit (70 GiB) do not fit one, but do fit two
    rows = ask(
        built[0],
        """
        SELECT gpu_id, kv_available_bytes > 0 FROM capacity
        WHERE model_id = 'Qwen/Qwen2.5-72B-Instruct' AND precision_id = 'fp8' AND gpu_count = 1
        AND gpu_id IN ('amd-mi250', 'amd-mi250-gcd', 'amd-mi210') ORDER BY gpu_id
        """,
    )
    assert rows == [("amd-mi210", False), ("amd-mi250", True), ("amd-mi250-gcd", False)]


def test_nothing_changed_publishes_nothing(built, models_dir):
    data_dir, first = built
    before = build_ids(data_dir)
    again = build(data_dir, models_dir, include=SMALL)
    assert (again.build_id, again.computed) == (None, 0)
    assert build_ids(data_dir) == before == [first.build_id]


def test_one_more_model_computes_one_group(built, models_dir, tmp_path):
    data_dir = shutil.copytree(built[0], tmp_path / "data", symlinks=True)
    more = build(data_dir, models_dir, include=(*SMALL, "openai-community/gpt2"))
    assert more.build_id
    assert more.computed == 1
    assert more.reused == built[1].computed - 1 or more.reused == built[1].computed
