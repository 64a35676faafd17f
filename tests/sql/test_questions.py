"""The macros of the pages' questions, given the tiny catalog: rows reckoned by hand."""

from decimal import Decimal

import polars as pl
import pytest
import tiny_catalog
from tiny_catalog import FRAMES, GIB, QWEN, TINY

from fitmart.estimator.finetune import training_s

CON = tiny_catalog.in_memory()
H100, RTX, MI300X = "nvidia-h100-sxm", "nvidia-rtx-4090", "amd-mi300x"


def _rows(sql, con=CON):
    return con.execute(sql).fetchall()


def test_context_scaling():
    # 327,680 bytes a token at 16 bit
    assert _rows(
        "SELECT context_tokens, is_beyond_configured_context, kv_gib, kv8_gib, kv_bytes_per_token "
        f"FROM context_scaling('{QWEN}')"
    ) == [(8192, False, 2.5, 1.25, 327_680.0), (32_768, False, 10.0, 5.0, 327_680.0)]


def test_kv_savings():
    # 80 layers × 64 heads × 128 × 2 × 2 bytes × 32,768 tokens = 80 GiB, eight times what 8 KV heads keep
    assert _rows(
        "SELECT attention, kv_precision, kv_gib, saved_by_precision_gib, times_smaller_than_multi_head "
        f"FROM kv_savings('{QWEN}', context := 32768)",
        tiny_catalog.in_memory(model=FRAMES["model"].with_columns(head_dim=pl.lit(128))),
    ) == [
        ("full multi-head", "bf16", 80.0, 0.0, 1.0),
        ("as the model is built", "bf16", 10.0, 0.0, 8.0),
        ("as the model is built", "fp8", 5.0, 5.0, 16.0),
    ]


def test_held_by_takes_the_precision_nearest_to_16_bit():
    assert _rows(f"SELECT gpu_id, gpu_count, precision_id FROM held_by('{QWEN}') ORDER BY ALL") == [
        (MI300X, 1, "bf16"), (H100, 1, "awq-int4"), (H100, 2, "awq-int4")
    ]  # fmt: skip


def test_gpus_for_has_a_row_for_each_gpu():
    assert _rows(f"SELECT gpu_id, gpu_count, precision_id, users FROM gpus_for('{QWEN}')") == [
        (H100, 1, "awq-int4", 11), (MI300X, 1, "bf16", 8), (RTX, None, None, None)
    ]  # fmt: skip
    assert _rows(f"SELECT gpu_id, gpu_count FROM gpus_for('{QWEN}', users := 12) WHERE gpu_count > 0") == [(H100, 2)]


def test_models_for():
    assert _rows(f"SELECT model_id, precision_id, users FROM models_for('{RTX}', context := 5000)") == [
        (TINY, "bf16", 60)
    ]
    assert _rows(f"SELECT model_id FROM models_for('{H100}', gpus := 2)") == [(QWEN,)]


def test_recommended_hardware():
    rows = _rows(f"SELECT recommended_as, gpu_count, gpu_id, vendor, usd_per_hour FROM recommended_hardware('{QWEN}')")
    # owned: 30,000 $ for one H100; rented: 1.99 $ for an MI300X
    assert rows == [
        ("smallest single GPU", 1, H100, "NVIDIA", Decimal("2.79")),
        ("fastest single GPU", 1, H100, "NVIDIA", Decimal("2.79")),
        ("cheapest to buy", 1, H100, "NVIDIA", Decimal("2.79")),
        ("cheapest to rent", 1, MI300X, "AMD", Decimal("1.99")),
        ("cheapest token", 1, MI300X, "AMD", Decimal("1.99")),
    ]


def test_cloud_offers_are_of_what_holds_it():
    rows = _rows(
        "SELECT provider_id, gpu_count, gpu_id, commitment, usd_per_hour, usd_per_month "
        f"FROM cloud_offers('{QWEN}', hours_per_month := 100)"
    )
    # one H100 from lambda or vast, two or more of vast's, the MI300X; nothing old, nothing without a host
    assert rows == [
        ("vast", 1, H100, "spot", Decimal("1.5"), Decimal("150")),
        ("lambda", 1, MI300X, "on_demand", Decimal("1.99"), Decimal("199")),
        ("lambda", 1, H100, "on_demand", Decimal("2.79"), Decimal("279")),
        ("vast", 1, H100, "on_demand", Decimal("2.99"), Decimal("299")),
        ("vast", 2, H100, "on_demand", Decimal("5.98"), Decimal("598")),
    ]


def test_scale_to_zero_only_where_the_provider_does():
    con = tiny_catalog.in_memory(
        provider=FRAMES["provider"].with_columns(has_scale_to_zero=pl.col("provider_id") == "vast")
    )
    rows = _rows(
        "SELECT provider_id, scale_to_zero_usd_per_month "
        f"FROM cloud_offers('{QWEN}', active_hours_per_day := 6) WHERE gpu_count = 1 AND gpu_id = '{H100}'",
        con,
    )
    # 1.50 and 2.99 $ for 6 hours of 30.417 days
    assert rows == [("vast", pytest.approx(273.75)), ("lambda", None), ("vast", pytest.approx(545.68, abs=0.01))]


def test_self_host_or_api():
    rows = _rows(
        "SELECT self_hosted_as, gpu_id, api_usd_per_mtok_blended, break_even_tokens_per_day, most_tokens_per_day, "
        f"is_reachable FROM self_host_or_api('{QWEN}')"
    )
    # (3 × 0.40 + 1.00) / 4 = 0.55 $; 1,452.70 $ a month are 47.76 $ a day, 86.84 M tokens;
    # 200 tokens/s of answers are 800 with their prompts, 69.12 M a day
    want = (MI300X, pytest.approx(0.55), pytest.approx(86.837e6, rel=1e-4), pytest.approx(69.12e6), False)
    assert rows == [("cheapest month", *want), ("cheapest token", *want)]


def test_planning_range():
    rows = _rows(
        "SELECT precision_id, total_gb_low, total_gb_high, overhead_share_low, overhead_share_high "
        f"FROM planning_range('{QWEN}', users := 2)"
    )
    # bf16 on one GPU: 150 GB of one user at 8k to 158 GB at 32k, and 10.74 GB of a second user's cache
    assert rows[0] == ("bf16", 150.0, 168.74, pytest.approx(0.032, abs=0.001), pytest.approx(0.160, abs=0.001))


def test_scenario_configuration():
    assert _rows(f"SELECT scenario, place, gpu_count, gpu_id, precision_id FROM scenario_configuration('{QWEN}')") == [
        ("proof of concept", 1, 1, H100, "awq-int4"),
        ("proof of concept", 2, 2, H100, "awq-int4"),
    ]


def test_finetuning_adds_up_and_takes_the_time_of_the_estimator():
    (lora, *_), *_ = (
        [dict(zip((d[0] for d in q.description), row, strict=True)) for row in q.fetchall() if row[0] == "lora"]
        for q in [CON.execute(f"SELECT * FROM finetuning('{QWEN}')")]
    )
    parts = ("weights", "adapter", "gradients", "optimizer", "activation", "logits", "overhead")
    assert sum(lora[f"{part}_gib"] for part in parts) == pytest.approx(lora["total_gib"], abs=0.05)
    one = pl.DataFrame(
        {"method": "lora", "is_checkpointed": True, "params_active": 72_706_203_648, "gpu_count": 1, "peak": 1.307e15}
    )
    seconds = one.select(training_s(pl.lit(1e6), pl.col("peak"))).item()
    assert lora["hours_per_mtok"] == pytest.approx(seconds / 3600, abs=0.01)


def test_anatomy_is_the_whole_model():
    assert _rows(f"SELECT sum(params), round(sum(params_share), 3), sum(bf16_gib) FROM anatomy('{QWEN}')") == [
        (72_706_203_648, pytest.approx(1.0, abs=0.002), pytest.approx(135.43, abs=0.05))
    ]


def test_annotated_config_and_provenance():
    assert _rows(f"SELECT field, field_value FROM annotated_config('{QWEN}')") == [
        ("hidden_size", "8192"), ("num_hidden_layers", "80")
    ]  # fmt: skip
    rows = _rows(f"SELECT figure, basis, source_id, publisher, age_days FROM provenance('{QWEN}')")
    assert ("weights: awq-int4, bf16", "derived", "huggingface", "Hugging Face", 1) in rows
    assert ("rent", "published", "lambda", "Lambda", 3) in rows
    assert ("price of a token", "published", "lambda", "Lambda", 3) in rows


def test_users_per_gpu_marks_the_best_of_each_class():
    assert _rows(
        f"SELECT precision_class, precision_id FROM users_per_gpu('{QWEN}') "
        f"WHERE is_best_of_class AND gpu_id = '{H100}' AND gpu_count = 1 ORDER BY ALL"
    ) == [("bf16", "bf16"), ("int4", "awq-int4")]


WORKLOAD = "SELECT is_held, gpu_count, gpu_id, precision_id, usd_per_hour, reason FROM workload"


def test_workload_says_what_holds_it_and_what_nearly_does():
    # a step of n users takes 20 ms + n × (1 ms + 7,168 × 0.1 µs): 37.2 ms for ten, 26.9 tokens/s
    assert _rows(f"{WORKLOAD}('{QWEN}', users := 10)") == [
        (True, 1, H100, "awq-int4", 2.79, None),
        (True, 2, H100, "awq-int4", 5.98, None),
        (False, 1, MI300X, "bf16", 1.99, "holds 8 of 10 users"),
    ]
    slow = _rows(f"{WORKLOAD}('{QWEN}', users := 10, min_tokens_per_s := 30, gpu := '{H100}')")
    assert [row[5] for row in slow] == ["gives each user 26.9 of 30 tokens/s"] * 2


@pytest.mark.parametrize(
    ("asked", "held"),
    [
        ("users := 1", [(MI300X, 1), (H100, 1), (H100, 2)]),
        ("users := 1, payment := 'spot'", [(H100, 1)]),
        ("users := 1, payment := 'owned'", [(H100, 1), (MI300X, 1), (H100, 2)]),
        (f"users := 1, gpu := '{H100}'", [(H100, 1), (H100, 2)]),
        ("users := 1, only_eu := TRUE", []),
        ("users := 1, places := 1", [(MI300X, 1)]),
    ],
)
def test_workload_filters(asked, held):
    assert _rows(f"SELECT gpu_id, gpu_count FROM workload('{QWEN}', {asked}) WHERE is_held") == held


def test_workload_reckons_step_prompt_and_price():
    (row,) = _rows(
        "SELECT decode_tokens_per_s, ttft_ms, throughput_tokens_per_s, requests_per_day, utilisation_share, "
        "usd_per_mtok "
        f"FROM workload('{QWEN}', users := 4, input_tokens := 500, output_tokens := 100, requests_per_day := 10000) "
        f"WHERE gpu_id = '{H100}' AND gpu_count = 1"
    )
    step = 0.02 + 4 * (0.001 + 550 * 1e-7)
    prompt = min(0.4, 500 * 0.0005 + 0.02)
    # the four prompts fill the same chunks
    throughput = 4 * 100 / (4 * 500 * 0.0005 + 0.02 + 100 * step)
    requests = throughput / 100 * 86_400
    use = 10_000 / requests
    price = 2.79 / (throughput * use * 3600) * 1e6
    assert row == pytest.approx((1 / step, prompt * 1e3, throughput, requests, use, price), rel=1e-6)


LAUNCH = "SELECT kind, command, is_as_asked, reason, changed, note FROM launch"


def test_launch_fills_the_templates_with_what_was_estimated():
    assert _rows(f"{LAUNCH}('{QWEN}', '{MI300X}', users := 8)") == [
        ("command", f"serve {QWEN} tp 1 len 8192 util 0.92 kv auto", True, None, None, None)
    ]
    assert [kind for kind, *_ in _rows(f"{LAUNCH}('{QWEN}', '{H100}', at_precision := 'awq-int4')")] == [
        "command", "docker"
    ]  # fmt: skip


def test_launch_refuses_what_does_not_hold_and_names_the_nearest():
    (row, _) = _rows(f"{LAUNCH}('{QWEN}', '{H100}', gpu_count := 2)")
    assert row == (
        "command",
        'serve "$REPOSITORY" tp 2 len 8192 util 0.92 kv auto',
        False,
        "67.71 GiB of weights a GPU and 7.29 GiB that the engine needs are more than the 76.0 GiB it may use",
        "precision bf16 → awq-int4",
        "REPOSITORY: a awq-int4 quantization of the model; none is in the catalog",
    )


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        # 11 users at 16 bit, 22 at 8 bit, 40 on two GPUs
        ("at_precision := 'awq-int4', users := 20", "KV cache 16 → 8 bit"),
        ("at_precision := 'awq-int4', users := 30", "GPUs 1 → 2"),
        ("at_precision := 'awq-int4', users := 100", "KV cache 16 → 8 bit; GPUs 1 → 2; users 100 → 80"),
        ("at_precision := 'awq-int4', users := 4, context := 30000", "KV cache 16 → 8 bit"),
        ("at_precision := 'awq-int4', context := 200000", "context 200000 → 32768"),
    ],
)
def test_the_nearest_change_comes_first(asked, changed):
    assert _rows(f"SELECT DISTINCT changed FROM launch('{QWEN}', '{H100}', {asked})") == [(changed,)]


def test_launch_takes_a_repository_of_the_catalog():
    own = FRAMES["model"].filter(pl.col("model_id") == TINY)
    awq = own.with_columns(model_id=pl.lit(f"{QWEN}-AWQ"), native_precision=pl.lit("awq-int4"))
    models = pl.concat([FRAMES["model"], awq], how="diagonal")
    (row,) = _rows(
        f"SELECT command, note FROM launch('{QWEN}', '{H100}', at_precision := 'awq-int4') WHERE kind = 'command'",
        tiny_catalog.in_memory(model=models),
    )
    assert row == (f"serve {QWEN}-AWQ tp 1 len 8192 util 0.92 kv auto", None)


def test_launch_asks_for_the_scaling_beyond_the_configured_context():
    short = FRAMES["model"].with_columns(max_context_tokens=pl.lit(16_384), extended_context_tokens=pl.lit(65_536))
    (row,) = _rows(
        f"SELECT command, note FROM launch('{QWEN}', '{MI300X}', context := 30000)",
        tiny_catalog.in_memory(model=short),
    )
    assert row == (
        f"""serve {QWEN} tp 1 len 30000 util 0.92 kv auto yarn 4.0 of 16384 at '"$ROPE_THETA"'""",
        "ROPE_THETA: rope_theta of its config.json",
    )


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("'no/such', 'h100 sxm'", "no such model in the catalog"),
        (f"'{QWEN}', 'H900'", "no such GPU in the catalog"),
        (f"'{QWEN}', '{H100}', at_precision := 'int5'", "no such precision of the model in the catalog"),
    ],
)
def test_launch_of_what_there_is_not(asked, reason):
    assert _rows(f"SELECT command, reason FROM launch({asked})") == [(None, reason)]


def test_model_precision_gives_native_the_class_of_the_repository():
    con = tiny_catalog.in_memory(
        model=FRAMES["model"].with_columns(native_precision=pl.lit("awq-int4")),
        precision=pl.concat(
            [
                FRAMES["precision"],
                FRAMES["precision"]
                .head(1)
                .with_columns(
                    precision_id=pl.lit("native"), precision_class=pl.lit("native"), bits_per_weight=pl.lit(None, float)
                ),
            ]
        ),
        footprint=FRAMES["footprint"].with_columns(precision_id=pl.col("precision_id").replace({"bf16": "native"})),
        **{
            name: FRAMES[name].with_columns(precision_id=pl.col("precision_id").replace({"bf16": "native"}))
            for name in ("fit", "capacity", "speed", "cost")
        },
    )
    assert _rows(
        f"SELECT precision_class, bits_per_weight FROM model_precision('{QWEN}') WHERE precision_id = 'native'", con
    ) == [("int4", 4.0)]


def test_a_gib_is_two_to_the_thirty():
    assert _rows(f"SELECT gib({3 * GIB})") == [(3.0,)]
