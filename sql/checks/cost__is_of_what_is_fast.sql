-- One row of cost for each row of speed (counted by model and precision).
WITH
fast AS (
    SELECT
        s.model_id,
        s.precision_id,
        count(*) AS speed_rows
    FROM speed AS s
    GROUP BY s.model_id, s.precision_id
),

priced AS (
    SELECT
        c.model_id,
        c.precision_id,
        count(*) AS cost_rows
    FROM cost AS c
    GROUP BY c.model_id, c.precision_id
)

SELECT
    coalesce(s.model_id, c.model_id) AS model_id,
    coalesce(s.precision_id, c.precision_id) AS precision_id,
    s.speed_rows,
    c.cost_rows
FROM fast AS s
FULL JOIN priced AS c ON s.model_id = c.model_id AND s.precision_id = c.precision_id
WHERE s.speed_rows IS DISTINCT FROM c.cost_rows;
