-- Which models fit on this GPU, at which precision, for how many users?
SELECT
    m.model_id,
    m.params_total_billion,
    m.precision_id,
    m.users,
    m.headroom_gib,
    m.decode_tokens_per_s
FROM models_for('nvidia-h100-sxm', gpus := 1, context := 8192, users := 1) AS m
ORDER BY m.params_total_billion DESC, m.model_id ASC
LIMIT 20;
