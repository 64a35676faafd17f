CREATE MACRO model_key(wanted) AS (
    SELECT m.model_id
    FROM model AS m
    WHERE lower(m.model_id) = lower(wanted)
    ORDER BY m.model_id = wanted DESC
    LIMIT 1
);
COMMENT ON MACRO model_key IS -- noqa: PRS
'The model_id that is written so, whatever the case; null: not in the catalog; source: model';
