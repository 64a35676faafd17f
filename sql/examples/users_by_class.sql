-- Which precision and engine holds the most users on each GPU, class by class?
SELECT
    u.gpu_name,
    u.gpu_count,
    u.precision_class,
    u.precision_id,
    u.engine_id,
    u.users
FROM users_per_gpu('Qwen/Qwen2.5-72B-Instruct', context := 8192) AS u
WHERE u.is_best_of_class AND u.verdict = 'fits'
ORDER BY u.gpu_name ASC, u.gpu_count ASC, u.precision_class ASC
LIMIT 20;
