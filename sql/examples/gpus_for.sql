-- How many of each GPU does this model need, and at which precision?
SELECT
    g.gpu_name,
    g.gpu_count,
    g.precision_id,
    g.users,
    g.decode_tokens_per_s,
    g.usd_per_hour
FROM gpus_for('Qwen/Qwen2.5-72B-Instruct', context := 8192, users := 1) AS g
WHERE g.gpu_count IS NOT NULL
ORDER BY g.gpu_count ASC, g.gpu_name ASC
LIMIT 20;
