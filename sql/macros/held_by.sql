CREATE MACRO held_by(model, context := 8192, users := 1) AS TABLE
SELECT
    f.gpu_id,
    f.gpu_count,
    p.precision_class,
    f.precision_id,
    f.engine_id,
    f.context_tokens,
    f.required_bytes,
    f.headroom_bytes,
    f.users,
    f.users_kv8,
    p.bits_per_weight,
    p.weights_total_bytes
FROM fit AS f
INNER JOIN model_precision(model) AS p ON f.precision_id = p.precision_id
WHERE
    f.model_id = model_key(model)
    AND f.context_tokens = grid_context(model, context)
    AND f.verdict = 'fits'
    AND coalesce(f.users, users) >= users
-- The nearest to 16 bit, then the engine that holds most.
QUALIFY
    row_number() OVER (
        PARTITION BY f.gpu_id, f.gpu_count
        ORDER BY floor(p.bits_per_weight) DESC, f.users DESC, f.precision_id ASC
    ) = 1;
COMMENT ON MACRO TABLE held_by IS -- noqa: PRS
'held_by(model, context, users): one row per GPU and count that holds the model for so many users of that context, at the precision nearest to 16 bit [bytes, count]; source: fit';
