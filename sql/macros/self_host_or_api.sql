CREATE MACRO self_host_or_api(model, context := 8192, users := 1, hours_per_month := 730) AS TABLE
WITH
rented AS (
    SELECT
        c.gpu_id,
        c.gpu_count,
        c.precision_id,
        c.engine_id,
        c.usd_per_hour * hours_per_month AS usd_per_month,
        c.usd_per_mtok_blended,
        -- Prompt and answer, three to one, at the throughput of the served users in those hours.
        s.throughput_tokens_per_s * 4 * 3600 * hours_per_month / (730 / 24) AS most_tokens_per_day
    FROM cost AS c
    INNER JOIN speed AS s
        ON c.precision_id = s.precision_id
        AND c.engine_id = s.engine_id
        AND c.gpu_id = s.gpu_id
        AND c.gpu_count = s.gpu_count
        AND c.context_tokens = s.context_tokens
        AND s.model_id = model_key(model)
    INNER JOIN fit AS f
        ON c.precision_id = f.precision_id
        AND c.engine_id = f.engine_id
        AND c.gpu_id = f.gpu_id
        AND c.gpu_count = f.gpu_count
        AND c.context_tokens = f.context_tokens
        AND f.model_id = model_key(model)
    WHERE
        c.model_id = model_key(model)
        AND c.context_tokens = grid_context(model, context)
        AND f.verdict = 'fits'
        AND coalesce(f.users, users) >= users
        AND c.usd_per_hour IS NOT NULL
),

chosen AS (
    SELECT
        'cheapest month' AS self_hosted_as,
        r.*
    FROM rented AS r
    QUALIFY row_number() OVER (ORDER BY r.usd_per_month ASC, r.most_tokens_per_day DESC, r.precision_id ASC) = 1
    UNION ALL
    SELECT
        'cheapest token' AS self_hosted_as,
        r.*
    FROM rented AS r
    QUALIFY row_number() OVER (ORDER BY r.usd_per_mtok_blended ASC, r.usd_per_month ASC, r.precision_id ASC) = 1
),

sold AS (
    SELECT
        a.provider_id,
        a.model_name_raw,
        a.input_usd_per_mtok,
        a.output_usd_per_mtok,
        (3 * a.input_usd_per_mtok + a.output_usd_per_mtok) / 4 AS api_usd_per_mtok_blended,
        a.observed_at,
        a.is_stale,
        a.source_id
    FROM api_price AS a
    WHERE a.model_id = cast(model_key(model) AS VARCHAR)
)

SELECT
    s.provider_id,
    s.model_name_raw,
    s.input_usd_per_mtok,
    s.output_usd_per_mtok,
    round(s.api_usd_per_mtok_blended, 4) AS api_usd_per_mtok_blended,
    c.self_hosted_as,
    c.gpu_count,
    c.gpu_id,
    c.precision_id,
    c.engine_id,
    round(c.usd_per_month, 2) AS usd_per_month,
    c.usd_per_mtok_blended,
    round(c.usd_per_month / (730 / 24) / nullif(s.api_usd_per_mtok_blended, 0) * 1e6) AS break_even_tokens_per_day,
    round(c.most_tokens_per_day) AS most_tokens_per_day,
    c.usd_per_month / (730 / 24) / nullif(s.api_usd_per_mtok_blended, 0) * 1e6
    <= c.most_tokens_per_day AS is_reachable,
    s.observed_at,
    s.is_stale,
    s.source_id
FROM sold AS s
LEFT JOIN chosen AS c ON TRUE
ORDER BY s.api_usd_per_mtok_blended, s.provider_id, c.self_hosted_as;
COMMENT ON MACRO TABLE self_host_or_api IS -- noqa: PRS
'self_host_or_api(model, context, users, hours_per_month): one row per provider that sells the model by the token, and rented configuration (cheapest month, cheapest token): tokens a day, prompt and answer 3:1, above which the rent is less, and whether the configuration can serve that many; prices blended 3:1 [USD/Mtok, USD/month, tokens/day]; source: api_price, cost, speed';
