CREATE MACRO scenario_configuration(model, context := 8192, places := 3) AS TABLE
WITH
scenario AS (
    SELECT
        v.scenario,
        v.rank,
        v.bits,
        v.wanted_users,
        v.is_discrete
    FROM (
        VALUES
        ('production', 1, 16, 10, TRUE),
        ('balanced', 2, 8, 4, TRUE),
        ('proof of concept', 3, 4, 1, FALSE)
    ) AS v (scenario, rank, bits, wanted_users, is_discrete)
),

held AS (
    SELECT
        s.scenario,
        s.rank,
        s.wanted_users,
        f.gpu_id,
        f.gpu_count,
        p.precision_class,
        f.precision_id,
        f.engine_id,
        f.context_tokens,
        f.users,
        f.required_bytes,
        f.headroom_bytes,
        g.name AS gpu_name,
        g.memory_bytes * f.gpu_count AS memory_bytes
    FROM scenario AS s
    INNER JOIN model_precision(model) AS p ON floor(p.bits_per_weight) = s.bits
    INNER JOIN fit AS f ON p.precision_id = f.precision_id
    INNER JOIN gpu AS g ON f.gpu_id = g.gpu_id
    WHERE
        f.model_id = model_key(model)
        AND f.context_tokens = grid_context(model, context)
        AND f.verdict = 'fits'
        AND coalesce(f.users, s.wanted_users) >= s.wanted_users
        AND NOT (s.is_discrete AND g.is_unified_memory)
    QUALIFY
        row_number() OVER (
            PARTITION BY s.scenario, f.gpu_id, f.gpu_count
            ORDER BY f.users DESC, f.precision_id ASC
        ) = 1
)

SELECT
    h.scenario,
    row_number() OVER w AS place,
    h.gpu_count,
    h.gpu_name,
    h.gpu_id,
    gib(h.memory_bytes) AS memory_gib,
    h.precision_class,
    h.precision_id,
    h.engine_id,
    h.context_tokens,
    h.wanted_users,
    h.users,
    gib(h.required_bytes) AS required_gib,
    gib(h.headroom_bytes) AS headroom_gib,
    c.usd_per_hour,
    c.purchase_usd
FROM held AS h
LEFT JOIN cost AS c
    ON h.precision_id = c.precision_id
    AND h.engine_id = c.engine_id
    AND h.gpu_id = c.gpu_id
    AND h.gpu_count = c.gpu_count
    AND h.context_tokens = c.context_tokens
    AND c.model_id = model_key(model)
WINDOW w AS (PARTITION BY h.scenario ORDER BY h.memory_bytes ASC, h.gpu_count ASC, h.gpu_id ASC)
QUALIFY row_number() OVER w <= places
ORDER BY h.rank, place;
COMMENT ON MACRO TABLE scenario_configuration IS -- noqa: PRS
'scenario_configuration(model, context, places): one row per scenario and place: the GPUs with the least memory that hold production (16 bit, ten users), balanced (8 bit, four users; both on discrete cards) and proof of concept (4 bit, one user) [GiB, count, USD/h, USD]; source: fit, cost, gpu';
