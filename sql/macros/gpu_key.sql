CREATE MACRO gpu_key(wanted) AS (
    SELECT g.gpu_id
    FROM gpu AS g
    WHERE lower(wanted) IN (lower(g.gpu_id), lower(g.name))
    ORDER BY g.gpu_id = wanted DESC
    LIMIT 1
);
COMMENT ON MACRO gpu_key IS -- noqa: PRS
'The gpu_id whose id or name is written so, whatever the case; null: not in the catalog; source: gpu';
