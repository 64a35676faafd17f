-- 0 < low ≤ figure ≤ high, for each of the four.
SELECT
    model_id,
    precision_id,
    engine_id,
    gpu_id,
    gpu_count,
    context_tokens
FROM speed
WHERE
    decode_tokens_per_s_low <= 0
    OR prefill_tokens_per_s_low <= 0
    OR ttft_ms_low <= 0
    OR throughput_tokens_per_s_low <= 0
    OR NOT (decode_tokens_per_s BETWEEN decode_tokens_per_s_low AND decode_tokens_per_s_high)
    OR NOT (prefill_tokens_per_s BETWEEN prefill_tokens_per_s_low AND prefill_tokens_per_s_high)
    OR NOT (ttft_ms BETWEEN ttft_ms_low AND ttft_ms_high)
    OR NOT (throughput_tokens_per_s BETWEEN throughput_tokens_per_s_low AND throughput_tokens_per_s_high);
