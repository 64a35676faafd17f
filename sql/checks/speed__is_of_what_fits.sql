-- One row of speed for each row of fit that fits or is tight (counted by model, precision, engine and GPU).
WITH
fitting AS (
    SELECT
        f.model_id,
        f.precision_id,
        f.engine_id,
        f.gpu_id,
        count(*) AS fitting_rows
    FROM fit AS f
    WHERE f.verdict IN ('fits', 'tight')
    GROUP BY f.model_id, f.precision_id, f.engine_id, f.gpu_id
),

fast AS (
    SELECT
        s.model_id,
        s.precision_id,
        s.engine_id,
        s.gpu_id,
        count(*) AS speed_rows
    FROM speed AS s
    GROUP BY s.model_id, s.precision_id, s.engine_id, s.gpu_id
)

SELECT
    coalesce(f.model_id, s.model_id) AS model_id,
    coalesce(f.precision_id, s.precision_id) AS precision_id,
    coalesce(f.gpu_id, s.gpu_id) AS gpu_id,
    f.fitting_rows,
    s.speed_rows
FROM fitting AS f
FULL JOIN fast AS s
    ON f.model_id = s.model_id
    AND f.precision_id = s.precision_id
    AND f.engine_id = s.engine_id
    AND f.gpu_id = s.gpu_id
WHERE f.fitting_rows IS DISTINCT FROM s.speed_rows;
