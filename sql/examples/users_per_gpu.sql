-- How many users at once does each GPU hold, at 8,192 tokens each?
SELECT
    u.gpu_name,
    u.precision_id,
    u.users,
    u.users_kv8,
    u.decode_tokens_per_s,
    u.usd_per_hour
FROM users_per_gpu('Qwen/Qwen2.5-72B-Instruct', context := 8192) AS u
WHERE u.gpu_count = 1 AND u.verdict = 'fits'
ORDER BY u.users DESC, u.gpu_name ASC
LIMIT 20;
