CREATE MACRO rent_or_buy(model, context := 8192, users := 1, hours_per_month := 730, usd_per_kwh := 0.15) AS TABLE
SELECT
    c.gpu_id,
    c.gpu_count,
    c.precision_id,
    c.engine_id,
    f.users,
    c.usd_per_hour,
    cast(hours_per_month AS DOUBLE) AS hours_per_month,
    round(c.usd_per_hour * hours_per_month, 2) AS usd_per_month,
    c.purchase_usd,
    g.purchase_basis,
    g.purchased_on,
    g.tdp_w * c.gpu_count AS power_w,
    cast(usd_per_kwh AS DOUBLE) AS usd_per_kwh,
    round(g.tdp_w * c.gpu_count / 1000 * hours_per_month * usd_per_kwh, 2) AS power_usd_per_month,
    -- Rent saved less electricity; null where that saves nothing.
    c.purchase_usd / if(
        c.usd_per_hour > g.tdp_w * c.gpu_count / 1000 * usd_per_kwh,
        (c.usd_per_hour - g.tdp_w * c.gpu_count / 1000 * usd_per_kwh) * hours_per_month,
        NULL
    ) AS payback_months,
    o.provider_id,
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
INNER JOIN gpu AS g ON c.gpu_id = g.gpu_id
LEFT JOIN offer AS o ON c.on_demand_offer_id = o.offer_id
WHERE
    c.model_id = model_key(model)
    AND c.context_tokens = grid_context(model, context)
    AND f.verdict = 'fits'
    AND coalesce(f.users, users) >= users
    AND c.purchase_usd IS NOT NULL
ORDER BY c.purchase_usd, c.gpu_id, c.precision_id;
COMMENT ON MACRO TABLE rent_or_buy IS -- noqa: PRS
'rent_or_buy(model, context, users, hours_per_month, usd_per_kwh): one row per configuration whose GPUs have a street price, cheapest to buy first: rent of those hours, electricity at the data sheet''s power for as long, and the months in which rent less electricity pays the purchase [USD, USD/h, USD/month, USD/kWh, W, months]; source: cost, gpu, offer';
