-- Which models fit on one such GPU, the largest first?
SELECT
    m.model_id,
    m.params_total,
    f.precision_id,
    f.users
FROM fit AS f
INNER JOIN model AS m ON f.model_id = m.model_id
WHERE f.gpu_id = 'nvidia-h100-sxm' AND f.gpu_count = 1 AND f.context_tokens = 8192 AND f.verdict = 'fits'
ORDER BY m.params_total DESC, f.users DESC
LIMIT 20;
