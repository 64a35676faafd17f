CREATE MACRO context_scaling(model) AS TABLE
SELECT
    k.context_tokens,
    m.max_context_tokens IS NOT NULL AND k.context_tokens > m.max_context_tokens AS is_beyond_configured_context,
    gib(max(k.minimum_bytes) FILTER (WHERE k.kv_precision = 'bf16')) AS kv_gib,
    gib(max(k.minimum_bytes) FILTER (WHERE k.kv_precision = 'fp8')) AS kv8_gib,
    gib(max(k.minimum_bytes) FILTER (WHERE k.kv_precision = 'q8_0')) AS kv_q8_0_gib,
    gib(max(k.minimum_bytes) FILTER (WHERE k.kv_precision = 'q4_0')) AS kv_q4_0_gib,
    gib(max(k.vllm_bytes) FILTER (WHERE k.kv_precision = 'bf16')) AS vllm_gib,
    gib(max(k.llamacpp_bytes) FILTER (WHERE k.kv_precision = 'bf16')) AS llamacpp_gib,
    round(max(k.minimum_bytes) FILTER (WHERE k.kv_precision = 'bf16') / k.context_tokens, 1) AS kv_bytes_per_token
FROM kv_cache AS k
INNER JOIN model AS m ON k.model_id = m.model_id
WHERE k.model_id = model_key(model)
GROUP BY k.context_tokens, m.max_context_tokens
ORDER BY k.context_tokens;
COMMENT ON MACRO TABLE context_scaling IS -- noqa: PRS
'context_scaling(model): one row per context: the least that one sequence keeps at 16, 8 and 4 bit, what vLLM and llama.cpp set aside for it at 16 bit, and the mean of a token [GiB, bytes]; source: kv_cache';
