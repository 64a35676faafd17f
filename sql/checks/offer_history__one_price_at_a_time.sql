-- An offer has one price at a time: its spans run forward and do not overlap.
WITH spans AS (
    SELECT
        h.offer_id,
        h.valid_from,
        h.valid_to,
        lead(h.valid_from) OVER (PARTITION BY h.offer_id ORDER BY h.valid_from) AS next_from
    FROM offer_history AS h
)

SELECT
    s.offer_id,
    s.valid_from,
    s.valid_to,
    s.next_from
FROM spans AS s
WHERE
    s.valid_to <= s.valid_from
    OR (s.next_from IS NOT NULL AND (s.valid_to IS NULL OR s.valid_to > s.next_from));
