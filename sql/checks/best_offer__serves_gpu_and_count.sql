-- The best offer is of exactly that GPU, count and commitment: as asked, or a per_gpu offer scaled within its range.
SELECT
    b.gpu_id,
    b.gpu_count,
    b.commitment,
    b.offer_id,
    b.usd_per_hour
FROM best_offer AS b
INNER JOIN offer AS o ON b.offer_id = o.offer_id
WHERE
    o.gpu_id <> b.gpu_id
    OR o.commitment <> b.commitment
    OR o.price_scope = 'gpu_only'
    OR NOT CASE b.price_basis
        WHEN 'offered' THEN o.gpu_count = b.gpu_count AND o.usd_per_hour = b.usd_per_hour
        WHEN 'scaled'
            THEN
                o.price_scope = 'per_gpu'
                AND b.gpu_count BETWEEN coalesce(o.min_gpu_count, o.gpu_count) AND coalesce(o.max_gpu_count, o.gpu_count)
                AND abs(o.usd_per_gpu_hour * b.gpu_count - b.usd_per_hour) <= 0.0001 * b.gpu_count
        ELSE FALSE
    END;
