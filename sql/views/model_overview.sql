CREATE VIEW model_overview AS
WITH
weights AS (
    SELECT
        w.model_id,
        max(w.weights_total_bytes) FILTER (WHERE w.precision_id = 'bf16') AS bf16_bytes
    FROM footprint AS w
    GROUP BY w.model_id
),

cache AS (
    SELECT
        k.model_id,
        max(k.minimum_bytes) FILTER (WHERE k.context_tokens = 8192) AS kv_8k_bytes,
        max(k.minimum_bytes) FILTER (WHERE k.context_tokens = 32768) AS kv_32k_bytes
    FROM kv_cache AS k
    WHERE k.kv_precision = 'bf16'
    GROUP BY k.model_id
)

SELECT
    m.model_id,
    m.family,
    m.task,
    round(m.params_total / 1e9, 3) AS params_total_billion,
    round(m.params_active / 1e9, 3) AS params_active_billion,
    m.layers,
    m.attention_kind,
    m.attention_heads,
    m.kv_heads,
    round(m.attention_heads / m.kv_heads, 2) AS kv_saving_ratio,
    m.experts,
    m.experts_per_token,
    m.max_context_tokens,
    m.extended_context_tokens,
    m.native_precision,
    gib(m.stored_bytes) AS stored_gib,
    gib(w.bf16_bytes) AS bf16_weights_gib,
    gib(c.kv_8k_bytes) AS kv_gib_at_8k,
    gib(c.kv_32k_bytes) AS kv_gib_at_32k,
    m.license,
    m.is_gated,
    m.downloads,
    m.released_on,
    m.source_id,
    m.observed_at
FROM model AS m
LEFT JOIN weights AS w ON m.model_id = w.model_id
LEFT JOIN cache AS c ON m.model_id = c.model_id;
COMMENT ON VIEW model_overview IS
'One row per model: size, attention, context, weights and KV cache at a glance; source: model, footprint, kv_cache';
COMMENT ON COLUMN model_overview.model_id IS 'Model; source: model';
COMMENT ON COLUMN model_overview.family IS 'Family parser; source: model';
COMMENT ON COLUMN model_overview.task IS 'What it is for; source: model';
COMMENT ON COLUMN model_overview.params_total_billion IS 'Parameters in memory [10^9]; source: model';
COMMENT ON COLUMN model_overview.params_active_billion IS 'Parameters one token touches [10^9]; source: model';
COMMENT ON COLUMN model_overview.layers IS 'Layers [count]; source: model';
COMMENT ON COLUMN model_overview.attention_kind IS 'mha, gqa, mqa, mla, hybrid or none; source: model';
COMMENT ON COLUMN model_overview.attention_heads IS 'Query heads [count]; source: model';
COMMENT ON COLUMN model_overview.kv_heads IS 'Key/value heads [count]; source: model';
COMMENT ON COLUMN model_overview.kv_saving_ratio IS 'How much smaller the KV cache is than with a KV head for every query head [ratio]; source: model';
COMMENT ON COLUMN model_overview.experts IS 'Routed experts [count]; source: model';
COMMENT ON COLUMN model_overview.experts_per_token IS 'Routed experts a token uses [count]; source: model';
COMMENT ON COLUMN model_overview.max_context_tokens IS 'Configured context [tokens]; source: model';
COMMENT ON COLUMN model_overview.extended_context_tokens IS 'Context with its documented scaling [tokens]; source: model';
COMMENT ON COLUMN model_overview.native_precision IS 'Precision as stored; source: model';
COMMENT ON COLUMN model_overview.stored_gib IS 'Weight files of the repository [GiB]; source: model';
COMMENT ON COLUMN model_overview.bf16_weights_gib IS 'Weights at 16 bit [GiB]; source: footprint';
COMMENT ON COLUMN model_overview.kv_gib_at_8k IS 'One sequence of 8,192 tokens, 16 bit [GiB]; source: kv_cache';
COMMENT ON COLUMN model_overview.kv_gib_at_32k IS 'One sequence of 32,768 tokens, 16 bit [GiB]; source: kv_cache';
COMMENT ON COLUMN model_overview.license IS 'License of the weights; source: model';
COMMENT ON COLUMN model_overview.is_gated IS 'Whether the Hub asks for an agreement first; source: model';
COMMENT ON COLUMN model_overview.downloads IS 'Downloads of the last 30 days [count]; source: model';
COMMENT ON COLUMN model_overview.released_on IS 'Day the repository was made; source: model';
COMMENT ON COLUMN model_overview.source_id IS 'Where the config came from; source: source';
COMMENT ON COLUMN model_overview.observed_at IS 'When that was seen (UTC); source: model';
