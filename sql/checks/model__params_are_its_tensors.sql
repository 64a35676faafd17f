-- params_total is the sum over the tensors in memory, MTP apart.
WITH summed AS (
    SELECT
        t.model_id,
        sum(t.params) FILTER (WHERE t.is_in_memory AND t.component <> 'mtp') AS params
    FROM model_tensor AS t
    GROUP BY t.model_id
)

SELECT
    m.model_id,
    m.params_total,
    s.params
FROM model AS m
INNER JOIN summed AS s ON m.model_id = s.model_id
WHERE m.params_total IS DISTINCT FROM s.params;
