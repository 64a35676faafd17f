-- Every source_id is a row of source.
WITH named AS (
    SELECT DISTINCT
        'model' AS table_name,
        x.source_id
    FROM model AS x
    UNION ALL
    SELECT DISTINCT
        'gpu' AS table_name,
        x.source_id
    FROM gpu AS x
    UNION ALL
    SELECT DISTINCT
        'precision' AS table_name,
        x.source_id
    FROM precision AS x
    UNION ALL
    SELECT DISTINCT
        'engine' AS table_name,
        x.source_id
    FROM engine AS x
    UNION ALL
    SELECT DISTINCT
        'engine_support' AS table_name,
        x.source_id
    FROM engine_support AS x
    UNION ALL
    SELECT DISTINCT
        'launch_template' AS table_name,
        x.source_id
    FROM launch_template AS x
    UNION ALL
    SELECT DISTINCT
        'provider' AS table_name,
        x.source_id
    FROM provider AS x
    UNION ALL
    SELECT DISTINCT
        'offer' AS table_name,
        x.source_id
    FROM offer AS x
    UNION ALL
    SELECT DISTINCT
        'api_price' AS table_name,
        x.source_id
    FROM api_price AS x
    UNION ALL
    SELECT DISTINCT
        'source_run' AS table_name,
        x.source_id
    FROM source_run AS x
    UNION ALL
    SELECT DISTINCT
        'rejected' AS table_name,
        x.source_id
    FROM rejected AS x
)

SELECT
    n.table_name,
    n.source_id
FROM named AS n
LEFT JOIN source AS s ON n.source_id = s.source_id
WHERE n.source_id IS NOT NULL AND s.source_id IS NULL;
