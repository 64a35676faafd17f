CREATE MACRO recommended_hardware(model, context := 8192, users := 1) AS TABLE
WITH
held AS (
    SELECT
        h.*,
        g.name AS gpu_name,
        g.vendor,
        g.is_unified_memory,
        g.memory_bytes * h.gpu_count AS memory_bytes,
        g.purchase_usd * h.gpu_count AS purchase_usd,
        g.purchase_basis,
        g.purchased_on
    FROM held_by(model, context := context, users := users) AS h
    INNER JOIN gpu AS g ON h.gpu_id = g.gpu_id
    WHERE g.is_released
),

priced AS (
    SELECT
        h.*,
        s.decode_tokens_per_s,
        s.decode_tokens_per_s_low,
        s.decode_tokens_per_s_high,
        c.usd_per_hour,
        c.usd_per_month,
        c.usd_per_mtok,
        o.provider_id,
        o.observed_at
    FROM held AS h
    LEFT JOIN speed AS s
        ON h.precision_id = s.precision_id
        AND h.engine_id = s.engine_id
        AND h.gpu_id = s.gpu_id
        AND h.gpu_count = s.gpu_count
        AND h.context_tokens = s.context_tokens
        AND s.model_id = model_key(model)
    LEFT JOIN cost AS c
        ON h.precision_id = c.precision_id
        AND h.engine_id = c.engine_id
        AND h.gpu_id = c.gpu_id
        AND h.gpu_count = c.gpu_count
        AND h.context_tokens = c.context_tokens
        AND c.model_id = model_key(model)
    LEFT JOIN offer AS o ON c.on_demand_offer_id = o.offer_id
),

named AS (
    SELECT
        1 AS rank,
        'smallest single GPU' AS recommended_as,
        p.memory_bytes AS sort_by,
        p.*
    FROM priced AS p
    WHERE p.gpu_count = 1
    UNION ALL
    SELECT
        2 AS rank,
        'fastest single GPU' AS recommended_as,
        -p.decode_tokens_per_s AS sort_by,
        p.*
    FROM priced AS p
    WHERE p.gpu_count = 1 AND p.decode_tokens_per_s IS NOT NULL
    UNION ALL
    SELECT
        3 AS rank,
        'cheapest to buy' AS recommended_as,
        p.purchase_usd AS sort_by,
        p.*
    FROM priced AS p
    WHERE p.purchase_usd IS NOT NULL
    UNION ALL
    SELECT
        4 AS rank,
        'cheapest unified memory' AS recommended_as,
        coalesce(p.purchase_usd, 1e12 + p.memory_bytes) AS sort_by,
        p.*
    FROM priced AS p
    WHERE p.is_unified_memory
    UNION ALL
    SELECT
        5 AS rank,
        'cheapest to rent' AS recommended_as,
        p.usd_per_hour AS sort_by,
        p.*
    FROM priced AS p
    WHERE p.usd_per_hour IS NOT NULL
    UNION ALL
    SELECT
        6 AS rank,
        'cheapest token' AS recommended_as,
        p.usd_per_mtok AS sort_by,
        p.*
    FROM priced AS p
    WHERE p.usd_per_mtok IS NOT NULL
)

SELECT
    n.recommended_as,
    n.gpu_count,
    n.gpu_name,
    n.vendor,
    n.gpu_id,
    gib(n.memory_bytes) AS memory_gib,
    n.precision_class,
    n.precision_id,
    n.engine_id,
    n.context_tokens,
    n.users,
    gib(n.headroom_bytes) AS headroom_gib,
    n.decode_tokens_per_s,
    n.decode_tokens_per_s_low,
    n.decode_tokens_per_s_high,
    n.purchase_usd,
    n.purchase_basis,
    n.purchased_on,
    n.usd_per_hour,
    n.usd_per_month,
    n.usd_per_mtok,
    n.provider_id,
    n.observed_at
FROM named AS n
QUALIFY
    row_number() OVER (PARTITION BY n.rank ORDER BY n.sort_by ASC, n.memory_bytes ASC, n.gpu_id ASC) = 1
ORDER BY n.rank;
COMMENT ON MACRO TABLE recommended_hardware IS -- noqa: PRS
'recommended_hardware(model, context, users): one row per recommendation (smallest and fastest single GPU, cheapest to buy, cheapest unified memory, cheapest to rent, cheapest token): a configuration that holds so many users, at the precision nearest to 16 bit that its GPUs hold [GiB, tokens/s, USD, USD/h, USD/month, USD/Mtok]; source: fit, speed, cost, gpu, offer';
