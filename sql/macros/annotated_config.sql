CREATE MACRO annotated_config(model) AS TABLE
SELECT
    c.field,
    c.field_value,
    c.meaning,
    c.effect
FROM config_field AS c
WHERE c.model_id = model_key(model)
ORDER BY c.meaning IS NULL, c.field;
COMMENT ON MACRO TABLE annotated_config IS -- noqa: PRS
'annotated_config(model): one row per field of its config.json: the value, what it means, and what it changes in memory or speed; source: config_field';
