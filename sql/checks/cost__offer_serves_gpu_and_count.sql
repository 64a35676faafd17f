-- A cost is of an offer of exactly that GPU, for exactly that many.
WITH used AS (
    SELECT DISTINCT
        c.gpu_id,
        c.gpu_count,
        c.on_demand_offer_id AS offer_id,
        'on_demand' AS commitment
    FROM cost AS c
    WHERE c.on_demand_offer_id IS NOT NULL
    UNION ALL
    SELECT DISTINCT
        c.gpu_id,
        c.gpu_count,
        c.spot_offer_id AS offer_id,
        'spot' AS commitment
    FROM cost AS c
    WHERE c.spot_offer_id IS NOT NULL
)

SELECT
    u.gpu_id,
    u.gpu_count,
    u.offer_id,
    o.gpu_id AS offered_gpu_id,
    o.gpu_count AS offered_gpu_count
FROM used AS u
INNER JOIN offer AS o ON u.offer_id = o.offer_id
WHERE
    o.gpu_id <> u.gpu_id
    OR o.commitment <> u.commitment
    OR o.price_scope = 'gpu_only'
    OR NOT (
        o.gpu_count = u.gpu_count
        OR (
            o.price_scope = 'per_gpu'
            AND u.gpu_count BETWEEN coalesce(o.min_gpu_count, o.gpu_count) AND coalesce(o.max_gpu_count, o.gpu_count)
        )
    );
