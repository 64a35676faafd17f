CREATE MACRO launch(model, gpu, gpu_count := 1, context := 8192, users := 1, at_precision := NULL) AS TABLE
WITH
-- Asked once each, whatever the plan: the precisions of the model, and what of the GPU fits.
known AS MATERIALIZED (
    SELECT p.*
    FROM model_precision(model) AS p
),

fits AS MATERIALIZED (
    SELECT f.*
    FROM fit AS f
    WHERE f.model_id = model_key(model) AND f.gpu_id = gpu_key(gpu) AND f.verdict = 'fits'
),

engines AS MATERIALIZED (
    SELECT DISTINCT c.engine_id
    FROM capacity AS c
    WHERE c.model_id = model_key(model) AND c.gpu_id = gpu_key(gpu)
),

one AS MATERIALIZED (
    SELECT
        g.vendor,
        g.device_count,
        m.max_context_tokens,
        m.extended_context_tokens,
        cast(m.model_id AS VARCHAR) AS name_of_model
    FROM model AS m
    CROSS JOIN gpu AS g
    WHERE m.model_id = model_key(model) AND g.gpu_id = gpu_key(gpu)
),

own AS (
    SELECT
        m.native_precision,
        coalesce(
            n.bits_per_weight,
            min(x.bits_per_weight) FILTER (WHERE x.precision_id = 'native'),
            16
        ) AS bits
    FROM model AS m
    LEFT JOIN precision AS n ON cast(n.precision_id AS VARCHAR) = m.native_precision
    CROSS JOIN known AS x
    WHERE m.model_id = model_key(model)
    GROUP BY m.native_precision, n.bits_per_weight
),

-- What is asked of each engine: the precision named, else the one nearest to how the model is stored.
asked AS MATERIALIZED (
    SELECT
        p.engine_id,
        p.precision_id,
        p.bits_per_weight AS bits
    FROM known AS p
    INNER JOIN engines AS e ON p.engine_id = e.engine_id
    CROSS JOIN own
    WHERE
        at_precision IS NULL
        OR p.precision_id = lower(at_precision)
        OR (p.precision_id = 'native' AND own.native_precision = lower(at_precision))
    QUALIFY
        row_number() OVER (
            PARTITION BY p.engine_id
            ORDER BY
                p.precision_id = 'native' DESC,
                abs(log2(p.bits_per_weight / own.bits)) ASC,
                p.precision_id ASC
        ) = 1
),

-- Every configuration of that GPU that fits, with a 16-bit and an 8-bit KV cache.
fitting AS (
    SELECT
        f.engine_id,
        f.precision_id,
        f.gpu_count,
        f.context_tokens,
        f.required_bytes,
        f.headroom_bytes,
        v.kv_bits,
        if(v.kv_bits = 16, f.users, f.users_kv8) AS held_users,
        p.bits_per_weight AS bits
    FROM fits AS f
    INNER JOIN known AS p ON f.precision_id = p.precision_id
    CROSS JOIN (VALUES (16), (8)) AS v (kv_bits)
),

-- How far each is from what is asked: the KV cache's type is the nearest change, then the precision, then more GPUs,
-- fewer users, a shorter context. No other is asked to have more bits, or to do with fewer GPUs.
near AS (
    SELECT
        t.*,
        a.precision_id AS asked_precision_id,
        least(context, t.context_tokens) AS context_given,
        least(users, coalesce(t.held_users, users)) AS users_given
    FROM fitting AS t
    INNER JOIN asked AS a ON t.engine_id = a.engine_id
    WHERE
        coalesce(t.held_users, 1) >= 1
        AND t.gpu_count >= gpu_count
        AND (t.bits <= a.bits OR t.precision_id = a.precision_id)
        AND t.context_tokens
        <= coalesce(grid_context(model, context), (
            SELECT max(k.context_tokens)
            FROM kv_cache AS k
            WHERE k.model_id = model_key(model)
        ))
    QUALIFY
        row_number() OVER (
            PARTITION BY t.engine_id
            ORDER BY
                if(t.kv_bits = 8, 1, 0)
                + 2 * greatest(log2(a.bits / t.bits), 0) + if(t.precision_id = a.precision_id, 0, 0.5)
                + 4.5 * log2(t.gpu_count / gpu_count)
                + if(coalesce(t.held_users, users) < users, 8 + 4.5 * log2(users / t.held_users), 0)
                + 16 * if(t.context_tokens < context, log2(context / t.context_tokens), 0) ASC,
                t.precision_id ASC
        ) = 1
),

-- What was asked for, and why it does not hold.
refused AS (
    SELECT
        a.engine_id,
        CASE
            WHEN grid_context(model, context) IS NULL
                THEN 'the model is not made for ' || context || ' tokens'
            WHEN f.precision_id IS NULL THEN 'that GPU does not come in this number'
            WHEN f.verdict = 'fits' AND coalesce(f.users, users) >= users THEN NULL
            WHEN f.verdict = 'fits' THEN 'holds ' || f.users || ' of ' || users || ' users'
            WHEN f.verdict = 'tight' THEN 'it fits by the estimate, not by the careful end of its band'
            WHEN f.limited_by = 'weights'
                THEN gib(c.weights_bytes) || ' GiB of weights a GPU and '
                || gib(c.budget_bytes - c.weights_bytes - c.kv_available_bytes)
                || ' GiB that the engine needs are more than the ' || gib(c.budget_bytes) || ' GiB it may use'
            WHEN f.limited_by = 'kv_cache'
                THEN gib(c.kv_available_bytes) || ' GiB a GPU are left for the KV cache beside ' || gib(c.weights_bytes)
                || ' GiB of weights; one user of ' || f.context_tokens || ' tokens needs '
                || gib(c.kv_available_bytes - f.headroom_bytes / (f.gpu_count * coalesce(g.device_count, 1))) || ' GiB'
            WHEN f.limited_by = 'tp_divisibility' THEN 'the model''s heads cannot be divided among so many GPUs'
            WHEN f.limited_by = 'unsupported' THEN 'the engine does not run this precision on this GPU'
            ELSE 'not known whether the engine runs it, or how much memory there is'
        END AS reason
    FROM asked AS a
    CROSS JOIN one AS g
    LEFT JOIN fit AS f
        ON a.engine_id = f.engine_id
        AND a.precision_id = f.precision_id
        AND f.model_id = model_key(model)
        AND f.gpu_id = gpu_key(gpu)
        AND f.gpu_count = gpu_count
        AND f.context_tokens = grid_context(model, context)
    LEFT JOIN capacity AS c
        ON f.engine_id = c.engine_id
        AND f.precision_id = c.precision_id
        AND c.model_id = model_key(model)
        AND c.gpu_id = gpu_key(gpu)
        AND c.gpu_count = gpu_count
),

-- The words of the templates.
given AS (
    SELECT
        a.engine_id,
        a.precision_id AS asked_precision_id,
        r.reason,
        n.precision_id,
        n.gpu_count AS gpus_given,
        n.context_given,
        n.users_given,
        n.kv_bits,
        n.required_bytes,
        n.held_users,
        concat_ws(
            '; ',
            if(n.precision_id <> a.precision_id, 'precision ' || a.precision_id || ' → ' || n.precision_id, NULL),
            if(n.kv_bits = 8, 'KV cache 16 → 8 bit', NULL),
            if(n.gpu_count <> gpu_count, 'GPUs ' || gpu_count || ' → ' || n.gpu_count, NULL),
            if(n.users_given < users, 'users ' || users || ' → ' || n.users_given, NULL),
            if(n.context_given < context, 'context ' || context || ' → ' || n.context_given, NULL)
        ) AS changed,
        m.vendor,
        e.version,
        m.max_context_tokens,
        m.extended_context_tokens,
        (
            SELECT any_value(c.field_value)
            FROM config_field AS c
            WHERE c.model_id = model_key(model) AND c.field IN ('rope_theta', 'text_config.rope_theta')
        ) AS rope_theta,
        m.name_of_model,
        (
            SELECT any_value(d.value)
            FROM engine_default AS d
            WHERE
                d.engine_id = a.engine_id AND d.parameter = 'gpu_memory_utilization' AND d.until_version IS NULL
        ) AS utilization,
        -- The model's own repository where its weights are as stored, else one that holds it at that precision.
        if(
            n.precision_id IN ('native', 'bf16', 'fp16', 'fp32'),
            m.name_of_model,
            (
                SELECT min(cast(x.model_id AS VARCHAR))
                FROM model AS x
                WHERE
                    x.native_precision = cast(n.precision_id AS VARCHAR)
                    AND (
                        x.base_model = m.name_of_model
                        OR starts_with(lower(x.model_id), lower(m.name_of_model) || '-')
                    )
            )
        ) AS repository
    FROM asked AS a
    INNER JOIN refused AS r ON a.engine_id = r.engine_id
    CROSS JOIN one AS m
    LEFT JOIN engine AS e ON a.engine_id = e.engine_id
    LEFT JOIN near AS n ON a.engine_id = n.engine_id
),

worded AS (
    SELECT
        v.*,
        coalesce(f.template, '') AS precision_flags,
        coalesce(
            replace(
                replace(
                    replace(x.template, '{factor}', cast(ceil(v.extended_context_tokens / v.max_context_tokens) AS VARCHAR)),
                    '{original}', cast(v.max_context_tokens AS VARCHAR)
                ),
                '{rope_theta}', coalesce(v.rope_theta, '''"$ROPE_THETA"''')
            ),
            ''
        ) AS context_flags,
        k.template AS kv,
        split_part(v.name_of_model, '/', -1) AS short_name
    FROM given AS v
    -- Beyond the configured context its documented scaling has to be asked for.
    LEFT JOIN launch_template AS x
        ON v.engine_id = x.engine_id AND x.kind = 'extended' AND v.context_given > v.max_context_tokens
    LEFT JOIN launch_template AS f
        ON v.engine_id = f.engine_id
        AND f.kind = 'flags'
        AND v.precision_id = f.precision_id
        AND (v.repository IS NULL OR v.engine_id = 'mlx')
    LEFT JOIN launch_template AS k ON v.engine_id = k.engine_id AND 'kv_' || v.kv_bits = k.kind
)

SELECT
    w.engine_id,
    coalesce(l.kind, 'none') AS kind,
    launch_line(
        l.template,
        w.name_of_model,
        coalesce(w.repository, if(w.precision_flags <> '', w.name_of_model, '"$REPOSITORY"')),
        w.short_name || '-' || upper(replace(cast(w.precision_id AS VARCHAR), 'gguf-', '')) || '.gguf',
        w.short_name || '-' || w.precision_id,
        w.gpus_given,
        w.context_given,
        w.users_given,
        w.kv,
        w.precision_flags || w.context_flags,
        w.utilization,
        w.version
    ) AS command,
    coalesce(w.reason IS NULL AND w.changed = '', FALSE) AS is_as_asked,
    w.reason,
    nullif(w.changed, '') AS changed,
    w.precision_id,
    w.gpus_given AS gpu_count,
    w.context_given AS context_tokens,
    w.users_given AS users,
    w.held_users,
    w.kv_bits,
    gib(w.required_bytes) AS required_gib,
    nullif(
        concat_ws(
            '; ',
            if(
                contains(l.template, '{repository}') AND w.repository IS NULL AND w.precision_flags = '',
                'REPOSITORY: a ' || w.precision_id || ' quantization of the model; none is in the catalog',
                NULL
            ),
            if(contains(w.context_flags, 'ROPE_THETA'), 'ROPE_THETA: rope_theta of its config.json', NULL)
        ),
        ''
    ) AS note
FROM worded AS w
LEFT JOIN launch_template AS l
    ON w.engine_id = l.engine_id
    AND l.kind IN ('command', 'docker')
    AND (l.vendor IS NULL OR w.vendor = l.vendor)
    AND w.precision_id IS NOT NULL
UNION ALL
SELECT
    NULL AS engine_id,
    'none' AS kind,
    NULL AS command,
    FALSE AS is_as_asked,
    CASE
        WHEN model_key(model) IS NULL THEN 'no such model in the catalog'
        WHEN gpu_key(gpu) IS NULL THEN 'no such GPU in the catalog'
        ELSE 'no such precision of the model in the catalog'
    END AS reason,
    NULL AS changed,
    NULL AS precision_id,
    NULL AS gpu_count,
    NULL AS context_tokens,
    NULL AS users,
    NULL AS held_users,
    NULL AS kv_bits,
    NULL AS required_gib,
    NULL AS note
WHERE NOT EXISTS (FROM asked)
ORDER BY engine_id DESC, kind ASC;
COMMENT ON MACRO TABLE launch IS -- noqa: PRS
'launch(model, gpu, gpu_count, context, users, at_precision): one row per engine and way to start it: the command with the flags that the estimate assumed. What does not hold is refused (reason, with the figures), and the nearest that does is given, with what was changed: the type of the KV cache first, then the precision, more GPUs, fewer users, a shorter context; without at_precision the model is served as it is stored [GiB, tokens, count, bits]; source: fit, capacity, launch_template';
