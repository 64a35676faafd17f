CREATE MACRO cheapest_fits(model, context := 8192, users := 1) AS TABLE
SELECT
    c.gpu_id,
    c.gpu_count,
    p.precision_class,
    c.precision_id,
    c.engine_id,
    c.context_tokens,
    f.verdict,
    f.users,
    s.decode_tokens_per_s,
    s.decode_tokens_per_s_low,
    s.decode_tokens_per_s_high,
    s.throughput_tokens_per_s,
    c.usd_per_hour,
    c.usd_per_month,
    c.usd_per_mtok,
    c.usd_per_mtok_low,
    c.usd_per_mtok_high,
    o.provider_id,
    o.instance_type,
    o.observed_at
FROM cost AS c
INNER JOIN fit AS f
    ON c.model_id = f.model_id
    AND c.precision_id = f.precision_id
    AND c.engine_id = f.engine_id
    AND c.gpu_id = f.gpu_id
    AND c.gpu_count = f.gpu_count
    AND c.context_tokens = f.context_tokens
    AND f.model_id = model_key(model)
INNER JOIN speed AS s
    ON c.model_id = s.model_id
    AND c.precision_id = s.precision_id
    AND c.engine_id = s.engine_id
    AND c.gpu_id = s.gpu_id
    AND c.gpu_count = s.gpu_count
    AND c.context_tokens = s.context_tokens
    AND s.model_id = model_key(model)
INNER JOIN precision AS p ON c.precision_id = p.precision_id
INNER JOIN offer AS o ON c.on_demand_offer_id = o.offer_id
WHERE
    c.model_id = model_key(model)
    AND c.context_tokens = grid_context(model, context)
    AND f.users >= users
    AND f.verdict = 'fits'
ORDER BY c.usd_per_hour, c.usd_per_mtok, c.gpu_id, c.precision_id;
COMMENT ON MACRO TABLE cheapest_fits IS -- noqa: PRS
'cheapest_fits(model, context, users): one row per rentable configuration that holds so many users of that context, cheapest hour first [USD/h, USD/month, USD/Mtok, tokens/s]; source: cost, fit, speed, offer';
