-- A provider's model has one set of prices at a time: its spans run forward and do not overlap.
WITH spans AS (
    SELECT
        h.provider_id,
        h.model_name_raw,
        h.valid_from,
        h.valid_to,
        lead(h.valid_from) OVER one_model AS next_from
    FROM api_price_history AS h
    WINDOW
        one_model AS (PARTITION BY h.provider_id, coalesce(h.model_id, lower(h.model_name_raw)) ORDER BY h.valid_from)
)

SELECT
    s.provider_id,
    s.model_name_raw,
    s.valid_from,
    s.valid_to,
    s.next_from
FROM spans AS s
WHERE
    s.valid_to <= s.valid_from
    OR (s.next_from IS NOT NULL AND (s.valid_to IS NULL OR s.valid_to > s.next_from));
