CREATE MACRO break_even(model, context := 8192) AS TABLE
WITH rented AS (
    SELECT min(c.usd_per_month) AS usd_per_month
    FROM cost AS c
    WHERE c.model_id = model_key(model) AND c.context_tokens = grid_context(model, context)
)

SELECT
    a.provider_id,
    a.model_name_raw,
    a.input_usd_per_mtok,
    a.output_usd_per_mtok,
    r.usd_per_month AS rent_usd_per_month,
    round(r.usd_per_month / (730.0 / 24) / nullif(a.output_usd_per_mtok, 0) * 1e6) AS break_even_output_tokens_per_day,
    a.observed_at,
    a.source_id
FROM api_price AS a
CROSS JOIN rented AS r
WHERE a.model_id = cast(model_key(model) AS VARCHAR)
ORDER BY a.output_usd_per_mtok, a.provider_id;
COMMENT ON MACRO TABLE break_even IS -- noqa: PRS
'break_even(model, context): one row per provider that sells the model by the token: output tokens a day above which the cheapest rented configuration costs less [USD/Mtok, USD/month, tokens/day]; source: api_price, cost';
