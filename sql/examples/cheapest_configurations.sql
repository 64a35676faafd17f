-- What is the cheapest way to rent room for ten users of a model at 8,192 tokens each?
SELECT
    c.gpu_id,
    c.gpu_count,
    c.precision_id,
    c.users,
    c.usd_per_hour,
    c.usd_per_mtok,
    c.provider_id
FROM cheapest_fits('Qwen/Qwen2.5-72B-Instruct', context := 8192, users := 10) AS c
ORDER BY c.usd_per_hour ASC, c.usd_per_mtok ASC
LIMIT 10;
