-- A price that stood is above zero, of at least one GPU, not from after the build, and last seen within its span.
SELECT
    h.offer_id,
    h.usd_per_hour,
    h.gpu_count,
    h.valid_from,
    h.last_seen_at
FROM offer_history AS h
CROSS JOIN build AS b
WHERE
    h.usd_per_hour <= 0
    OR h.gpu_count < 1
    OR h.valid_from > b.built_at
    OR h.last_seen_at > b.built_at
    OR h.last_seen_at > h.valid_to;
