-- What is the cheapest way to serve ten users, and what nearly does?
SELECT
    w.is_held,
    w.gpu_count,
    w.gpu_name,
    w.precision_id,
    w.users,
    w.decode_tokens_per_s,
    w.ttft_ms,
    w.usd_per_month,
    w.provider_id,
    w.reason
FROM workload('Qwen/Qwen2.5-72B-Instruct', users := 10, context := 8192, min_tokens_per_s := 10) AS w;
