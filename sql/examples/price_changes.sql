-- Which prices have moved by 5 % or more since a day, and which offers came or went?
SELECT
    c.changed_at,
    c.kind,
    c.provider_id,
    c.instance_type,
    c.gpu_id,
    c.gpu_count,
    c.commitment,
    c.old_usd_per_hour,
    c.new_usd_per_hour,
    c.change_share
FROM offer_changes('2026-06-01') AS c
WHERE abs(coalesce(c.change_share, 1)) >= 0.05
ORDER BY c.changed_at DESC, c.provider_id ASC, c.instance_type ASC, c.gpu_count ASC
LIMIT 50;
