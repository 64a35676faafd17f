-- What is each figure made from, and how old was it at the build?
SELECT
    s.source_id,
    s.kind,
    s.status,
    s.served_rows,
    s.observed_at,
    s.is_stale
FROM source_status AS s
WHERE s.served_rows > 0
ORDER BY s.is_stale DESC, s.kind ASC, s.source_id ASC;
