CREATE MACRO provenance(model) AS TABLE
WITH
used AS (
    SELECT
        1 AS rank,
        'config and shape' AS figure,
        m.anatomy_basis AS basis,
        m.source_id,
        m.observed_at,
        m.revision AS detail
    FROM model AS m
    WHERE m.model_id = model_key(model)
    UNION ALL
    SELECT
        2 AS rank,
        'weights: ' || string_agg(w.precision_id, ', ' ORDER BY w.precision_id) AS figure,
        w.basis,
        m.source_id,
        m.observed_at,
        'sum over model_tensor by the rules of precision' AS detail
    FROM footprint AS w
    INNER JOIN model AS m ON w.model_id = m.model_id
    WHERE w.model_id = model_key(model)
    GROUP BY w.basis, m.source_id, m.observed_at
    UNION ALL
    SELECT
        3 AS rank,
        'KV cache' AS figure,
        m.anatomy_basis AS basis,
        m.source_id,
        m.observed_at,
        'sum over model_cache' AS detail
    FROM model AS m
    WHERE m.model_id = model_key(model)
    UNION ALL
    SELECT
        4 AS rank,
        'GPU memory and rates' AS figure,
        g.memory_basis AS basis,
        g.source_id,
        cast(max(g.observed_on) AS TIMESTAMP) AS observed_at,
        count(*) || ' GPUs' AS detail
    FROM gpu AS g
    GROUP BY g.memory_basis, g.source_id
    UNION ALL
    SELECT
        5 AS rank,
        'what runs where: ' || e.engine_id AS figure,
        'published' AS basis,
        e.source_id,
        cast(max(e.observed_on) AS TIMESTAMP) AS observed_at,
        count(*) || ' rules of support' AS detail
    FROM engine_support AS e
    GROUP BY e.engine_id, e.source_id
    UNION ALL
    SELECT
        6 AS rank,
        'rent' AS figure,
        'published' AS basis,
        o.source_id,
        max(o.observed_at) AS observed_at,
        count(*) || ' offers used' AS detail
    FROM offer AS o
    WHERE
        o.offer_id IN (
            SELECT c.on_demand_offer_id
            FROM cost AS c
            WHERE c.model_id = model_key(model)
        )
    GROUP BY o.source_id
    UNION ALL
    SELECT
        7 AS rank,
        'price of a token' AS figure,
        'published' AS basis,
        a.source_id,
        max(a.observed_at) AS observed_at,
        count(*) || ' prices' AS detail
    FROM api_price AS a
    WHERE a.model_id = cast(model_key(model) AS VARCHAR)
    GROUP BY a.source_id
)

SELECT
    u.figure,
    u.basis,
    u.source_id,
    s.publisher,
    s.license,
    s.url,
    u.observed_at,
    date_diff('day', u.observed_at, b.built_at) AS age_days,
    u.detail
FROM used AS u
LEFT JOIN source AS s ON u.source_id = s.source_id
CROSS JOIN build AS b
ORDER BY u.rank, u.figure, u.basis, u.source_id;
COMMENT ON MACRO TABLE provenance IS -- noqa: PRS
'provenance(model): one row per kind of figure, basis and source: how it is known, from whom, under which license, and how old it was at the build [days]; source: model, footprint, gpu, engine_support, offer, api_price, source';
