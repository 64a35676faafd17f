-- An offer has a price, GPUs, and was seen before this build.
SELECT
    o.offer_id,
    o.usd_per_hour,
    o.gpu_count,
    o.observed_at
FROM offer AS o
CROSS JOIN build AS b
WHERE
    o.usd_per_hour <= 0
    OR o.gpu_count < 1
    OR o.min_gpu_count > o.max_gpu_count
    OR o.price_scope NOT IN ('instance', 'per_gpu', 'gpu_only')
    OR o.observed_at > b.built_at;
