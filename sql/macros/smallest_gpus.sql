CREATE MACRO smallest_gpus(model, context := 8192, users := 1, places := 3) AS TABLE
WITH ranked AS (
    SELECT
        p.precision_class,
        f.precision_id,
        f.engine_id,
        g.gpu_id,
        g.name AS gpu_name,
        g.memory_bytes,
        f.context_tokens,
        f.required_bytes,
        f.headroom_bytes,
        f.users,
        f.verdict,
        row_number() OVER (PARTITION BY f.precision_id ORDER BY g.memory_bytes ASC, f.users DESC, g.gpu_id ASC) AS place
    FROM fit AS f
    INNER JOIN gpu AS g ON f.gpu_id = g.gpu_id
    INNER JOIN precision AS p ON f.precision_id = p.precision_id
    WHERE
        f.model_id = model_key(model)
        AND f.context_tokens = grid_context(model, context)
        AND f.gpu_count = 1
        AND f.verdict = 'fits'
        AND f.users >= users
        AND g.is_released
)

SELECT
    r.precision_class,
    r.precision_id,
    r.place,
    r.gpu_id,
    r.gpu_name,
    gib(r.memory_bytes) AS memory_gib,
    r.engine_id,
    r.context_tokens,
    gib(r.required_bytes) AS required_gib,
    gib(r.headroom_bytes) AS headroom_gib,
    r.users
FROM ranked AS r
WHERE r.place <= places
ORDER BY r.precision_class, r.precision_id, r.place;
COMMENT ON MACRO TABLE smallest_gpus IS -- noqa: PRS
'smallest_gpus(model, context, users, places): one row per precision and place: the single GPUs with the least memory that hold the model for so many users of that context [GiB]; source: fit, gpu';
