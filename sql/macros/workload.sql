CREATE MACRO workload(
    model,
    users := 1,
    context := 8192,
    input_tokens := NULL,
    output_tokens := NULL,
    requests_per_day := NULL,
    min_tokens_per_s := 10,
    payment := 'on_demand',
    only_eu := FALSE,
    gpu := NULL,
    places := 10,
    max_age_days := 90
) AS TABLE
WITH
known AS MATERIALIZED (
    SELECT p.*
    FROM model_precision(model) AS p
),

-- What is not said of a request: three quarters of the context are prompt, the rest is the answer.
asked AS (
    SELECT
        coalesce(input_tokens, if(output_tokens IS NULL, floor(context * 0.75), context - output_tokens)) AS prompt,
        coalesce(output_tokens, context - coalesce(input_tokens, floor(context * 0.75))) AS answer
),

-- A cache of windows or states does not grow with the tokens: its reads count as at the grid's context.
cache AS (
    SELECT coalesce(bool_and(c.kind IN ('full', 'mla')), TRUE) AS is_linear
    FROM model_cache AS c
    WHERE c.model_id = model_key(model)
),

counted AS (
    SELECT DISTINCT
        a.gpu_id,
        a.gpu_count
    FROM capacity AS a
    WHERE a.model_id = model_key(model)
),

offered AS (
    SELECT
        n.gpu_id,
        n.gpu_count,
        o.offer_id,
        if(o.gpu_count = n.gpu_count, o.usd_per_hour, o.usd_per_gpu_hour * n.gpu_count) AS usd_per_hour
    FROM offer AS o
    CROSS JOIN build AS b
    INNER JOIN counted AS n ON o.gpu_id = n.gpu_id
    WHERE
        o.commitment = payment
        AND (NOT only_eu OR o.is_eu)
        AND o.price_scope <> 'gpu_only'
        AND coalesce(o.product_kind, 'vm') IN ('vm', 'bare_metal')
        AND NOT is_doubtful(o.quality_flags)
        AND o.observed_at >= b.built_at - to_days(max_age_days)
        AND if(
            o.price_scope = 'per_gpu',
            n.gpu_count
            BETWEEN coalesce(o.min_gpu_count, o.gpu_count) AND coalesce(o.max_gpu_count, o.gpu_count),
            o.gpu_count = n.gpu_count
        )
    QUALIFY
        row_number() OVER (
            PARTITION BY n.gpu_id, n.gpu_count
            ORDER BY
                if(o.gpu_count = n.gpu_count, o.usd_per_hour, o.usd_per_gpu_hour * n.gpu_count) ASC,
                coalesce(o.is_gpu_assumed, FALSE) ASC,
                o.observed_at DESC,
                o.offer_id ASC
        ) = 1
),

-- The context of the grid that holds each user, and the shortest whose request (three quarters prompt) is no smaller
-- than the one asked for: the terms of its speed are nearest.
placed AS MATERIALIZED (
    SELECT
        q.prompt,
        q.answer,
        grid_context(model, greatest(context, q.prompt + q.answer)) AS fit_context,
        grid_context(
            model, least(greatest(q.prompt / 0.75, (q.prompt + q.answer / 2) / 0.875), greatest(context, q.prompt + q.answer))
        ) AS speed_context
    FROM asked AS q
),

-- What holds, with what each user takes beside the first. llama.cpp's fullest GPU changes with the context, so that its
-- share follows from how many users fit.
held AS (
    SELECT
        f.gpu_id,
        f.gpu_count,
        f.precision_id,
        f.engine_id,
        f.context_tokens,
        f.verdict,
        f.limited_by,
        f.users AS fit_users,
        p.precision_class,
        p.bits_per_weight,
        f.headroom_bytes - (users - 1) * CASE
            WHEN f.engine_id = 'llama.cpp' AND f.users > 1 THEN f.headroom_bytes / (f.users - 1)
            ELSE a.kv_available_bytes * f.gpu_count * coalesce(g.device_count, 1) - f.headroom_bytes
        END AS headroom_bytes,
        g.name AS gpu_name,
        g.memory_bytes,
        g.tdp_w,
        g.purchase_usd * f.gpu_count AS purchase_usd,
        d.prompt,
        d.answer,
        d.speed_context
    FROM fit AS f
    INNER JOIN placed AS d ON f.context_tokens = d.fit_context
    INNER JOIN gpu AS g ON f.gpu_id = g.gpu_id
    INNER JOIN known AS p ON f.precision_id = p.precision_id
    LEFT JOIN capacity AS a
        ON f.precision_id = a.precision_id
        AND f.engine_id = a.engine_id
        AND f.gpu_id = a.gpu_id
        AND f.gpu_count = a.gpu_count
        AND a.model_id = model_key(model)
    WHERE
        f.model_id = model_key(model)
        AND (gpu IS NULL OR f.gpu_id = gpu_key(gpu))
        AND g.is_released
),

-- The terms of a decode step and of a prompt, put together for this many users and tokens.
step AS MATERIALIZED (
    SELECT
        h.*,
        s.decode_tokens_per_s,
        s.decode_tokens_per_s_low,
        s.decode_tokens_per_s_high,
        s.ttft_ms,
        s.ttft_ms_low,
        s.ttft_ms_high,
        s.decode_fixed_s
        + s.decode_experts_s * if(m.experts > 0, 1 - (1 - m.experts_per_token / m.experts) ** users, 1)
        + users * (
            s.decode_s_per_user
            + s.decode_s_per_kv_token * if(k.is_linear, h.prompt + h.answer / 2, h.speed_context * 0.875)
        ) AS step_s,
        least(
            s.ttft_ms / 1e3,
            s.prefill_s_per_token
            * h.prompt
            * pipelined_share(h.engine_id, h.gpu_count, h.prompt)
            / pipelined_share(h.engine_id, h.gpu_count, floor(h.speed_context * 0.75))
            + s.prefill_fixed_s
        ) AS prompt_s,
        -- The prompts of all users fill the same chunks.
        s.prefill_s_per_token
        * h.prompt
        * users
        * pipelined_share(h.engine_id, h.gpu_count, h.prompt * users)
        / pipelined_share(h.engine_id, h.gpu_count, floor(h.speed_context * 0.75))
        + s.prefill_fixed_s AS joint_prompts_s
    FROM held AS h
    CROSS JOIN cache AS k
    INNER JOIN model AS m ON m.model_id = model_key(model)
    LEFT JOIN speed AS s
        ON h.precision_id = s.precision_id
        AND h.engine_id = s.engine_id
        AND h.gpu_id = s.gpu_id
        AND h.gpu_count = s.gpu_count
        AND h.speed_context = s.context_tokens
        AND s.model_id = model_key(model)
),

served AS (
    SELECT
        t.*,
        1 / t.step_s AS pace,
        users * t.answer / (least(users * t.prompt_s, t.joint_prompts_s) + t.answer * t.step_s) AS throughput
    FROM step AS t
),

priced AS (
    SELECT
        v.*,
        v.throughput / greatest(v.answer, 1) * 86400 AS most_requests,
        o.offer_id,
        if(payment = 'owned', v.tdp_w * v.gpu_count / 1000 * 0.15, o.usd_per_hour) AS usd_per_hour,
        v.tdp_w * v.gpu_count / 1000 * 730 * 0.15 AS power_usd_per_month
    FROM served AS v
    LEFT JOIN offered AS o ON v.gpu_id = o.gpu_id AND v.gpu_count = o.gpu_count
),

judged AS MATERIALIZED (
    SELECT
        r.*,
        if(requests_per_day IS NULL, 0.4, least(requests_per_day / r.most_requests, 1)) AS utilisation_share,
        CASE
            WHEN r.limited_by IN ('context', 'tp_divisibility', 'unsupported', 'unknown')
                THEN concat('the engine refuses it: ', r.limited_by)
            WHEN r.limited_by = 'weights'
                THEN concat(gib(-r.headroom_bytes), ' GiB too little for the weights and these users')
            WHEN r.limited_by = 'kv_cache'
                THEN concat(gib(-r.headroom_bytes), ' GiB too little for the KV cache of these users')
            WHEN r.fit_users < users THEN concat('holds ', r.fit_users, ' of ', users, ' users')
            WHEN r.verdict = 'tight' THEN 'it fits by the estimate, not by the careful end of its band'
            WHEN r.pace IS NULL THEN 'no speed is known for this GPU'
            WHEN r.pace < min_tokens_per_s
                THEN concat('gives each user ', round(r.pace, 1), ' of ', min_tokens_per_s, ' tokens/s')
            WHEN r.most_requests < requests_per_day
                THEN concat('serves ', cast(floor(r.most_requests) AS BIGINT), ' of ', requests_per_day, ' requests a day')
            WHEN r.usd_per_hour IS NULL THEN 'it holds the workload, but no such offer for that GPU and count is known'
        END AS reason,
        CASE
            WHEN r.limited_by IN ('context', 'tp_divisibility', 'unsupported', 'unknown') THEN 0
            WHEN r.headroom_bytes < 0 AND r.limited_by IS NOT NULL
                THEN r.gpu_count * r.memory_bytes / (r.gpu_count * r.memory_bytes - r.headroom_bytes)
            WHEN r.fit_users < users THEN r.fit_users / users
            WHEN r.pace < min_tokens_per_s THEN r.pace / min_tokens_per_s
            WHEN r.most_requests < requests_per_day THEN r.most_requests / requests_per_day
            ELSE 1
        END AS share
    FROM priced AS r
),

-- Of one GPU and count stands what holds it nearest to 16 bit, else what comes nearest to holding it.
chosen AS (
    SELECT
        j.*,
        j.reason IS NULL AS is_held
    FROM judged AS j
    WHERE j.reason IS NULL OR j.share >= 0.5
    QUALIFY
        row_number() OVER (
            PARTITION BY j.gpu_id, j.gpu_count
            ORDER BY
                j.reason IS NULL DESC,
                if(j.reason IS NULL, 1, j.share) DESC,
                floor(j.bits_per_weight) DESC,
                j.throughput DESC,
                j.precision_id ASC
        ) = 1
)

SELECT
    c.is_held,
    row_number() OVER place AS place,
    c.gpu_count,
    c.gpu_name,
    c.gpu_id,
    c.precision_class,
    c.precision_id,
    c.engine_id,
    c.context_tokens,
    c.verdict,
    c.fit_users AS users,
    gib(c.headroom_bytes) AS headroom_gib,
    c.pace AS decode_tokens_per_s,
    c.pace * c.decode_tokens_per_s_low / c.decode_tokens_per_s AS decode_tokens_per_s_low,
    c.pace * c.decode_tokens_per_s_high / c.decode_tokens_per_s AS decode_tokens_per_s_high,
    c.prompt_s * 1e3 AS ttft_ms,
    c.prompt_s * 1e3 * c.ttft_ms_low / c.ttft_ms AS ttft_ms_low,
    c.prompt_s * 1e3 * c.ttft_ms_high / c.ttft_ms AS ttft_ms_high,
    c.throughput AS throughput_tokens_per_s,
    c.most_requests AS requests_per_day,
    c.utilisation_share,
    c.usd_per_hour,
    c.usd_per_hour * 730 AS usd_per_month,
    c.usd_per_hour / (c.throughput * c.utilisation_share * 3600) * 1e6 AS usd_per_mtok,
    c.power_usd_per_month,
    c.purchase_usd,
    o.provider_id,
    o.instance_type,
    o.region,
    o.is_eu,
    o.billing_granularity,
    o.observed_at,
    o.is_stale,
    o.url,
    c.reason
FROM chosen AS c
LEFT JOIN offer AS o ON c.offer_id = o.offer_id
WINDOW place AS (
    PARTITION BY c.is_held
    ORDER BY
        c.usd_per_hour ASC NULLS LAST,
        c.share DESC,
        if(c.is_held, -c.throughput, c.gpu_count) ASC,
        c.memory_bytes ASC,
        c.gpu_id ASC
)
QUALIFY row_number() OVER place <= places
ORDER BY c.is_held DESC, place ASC;
COMMENT ON MACRO TABLE workload IS -- noqa: PRS
'workload(model, users, context, input_tokens, output_tokens, requests_per_day, min_tokens_per_s, payment, only_eu, gpu, places, max_age_days): one row per configuration that holds so many users at once (is_held), cheapest first, then those that nearly do, with the reason; payment is on_demand, spot or owned (electricity); figures are put together from the terms of the next context of the grid, never more optimistic than fitmart plan [tokens/s, ms, requests/day, GiB, USD/h, USD/month, USD/Mtok]; source: fit, capacity, speed, offer, gpu';
