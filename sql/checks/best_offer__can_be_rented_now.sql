-- What counts as cheapest comes with its host, can be rented, and was seen in the last 90 days.
SELECT
    x.offer_id,
    o.price_scope,
    o.product_kind,
    o.observed_at
FROM best_offer AS x
INNER JOIN offer AS o ON x.offer_id = o.offer_id
CROSS JOIN build AS b
WHERE
    o.price_scope = 'gpu_only'
    OR coalesce(o.product_kind, 'vm') NOT IN ('vm', 'bare_metal')
    OR o.observed_at < b.built_at - to_days(90);
