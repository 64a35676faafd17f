CREATE MACRO smallest_gpus(model, context := 8192, users := 1, places := 3) AS TABLE
WITH
-- Of a class on one GPU stands the precision and engine that holds the most users.
best AS (
    SELECT
        p.precision_class,
        f.precision_id,
        f.engine_id,
        f.gpu_id,
        f.context_tokens,
        f.required_bytes,
        f.headroom_bytes,
        f.users
    FROM fit AS f
    INNER JOIN model_precision(model) AS p ON f.precision_id = p.precision_id
    WHERE
        f.model_id = model_key(model)
        AND f.context_tokens = grid_context(model, context)
        AND f.gpu_count = 1
        AND f.verdict = 'fits'
        AND coalesce(f.users, users) >= users
    QUALIFY
        row_number() OVER (
            PARTITION BY p.precision_class, f.gpu_id
            ORDER BY f.users DESC, f.required_bytes ASC, f.precision_id ASC
        ) = 1
),

ranked AS (
    SELECT
        b.*,
        g.name AS gpu_name,
        g.memory_bytes,
        row_number() OVER (
            PARTITION BY b.precision_class
            ORDER BY g.memory_bytes ASC, b.users DESC, b.gpu_id ASC
        ) AS place
    FROM best AS b
    INNER JOIN gpu AS g ON b.gpu_id = g.gpu_id
    WHERE g.is_released
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
ORDER BY r.precision_class, r.place;
COMMENT ON MACRO TABLE smallest_gpus IS -- noqa: PRS
'smallest_gpus(model, context, users, places): one row per class of precision and place: the single GPUs with the least memory that hold the model for so many users of that context, on whichever engine of the class holds most [GiB]; source: fit, gpu';
