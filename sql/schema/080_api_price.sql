-- What a token costs where somebody else runs the model.

CREATE TABLE api_price (
    provider_id VARCHAR NOT NULL,
    model_id VARCHAR,
    input_usd_per_mtok DOUBLE,
    output_usd_per_mtok DOUBLE,
    cached_input_usd_per_mtok DOUBLE,
    model_name_raw VARCHAR NOT NULL,
    context_tokens BIGINT,
    note VARCHAR,
    source_id VARCHAR NOT NULL,
    observed_at TIMESTAMP,
    is_stale BOOLEAN,
    origin VARCHAR
);
COMMENT ON TABLE api_price IS 'One row per provider and model served by the token; source: price lists';
COMMENT ON COLUMN api_price.provider_id IS 'Who bills it; source: provider';
COMMENT ON COLUMN api_price.model_id IS 'Model, where the raw name is known; source: name resolution';
COMMENT ON COLUMN api_price.input_usd_per_mtok IS 'Price of a million prompt tokens [USD/Mtok]; source: price list';
COMMENT ON COLUMN api_price.output_usd_per_mtok IS 'Price of a million output tokens [USD/Mtok]; source: price list';
COMMENT ON COLUMN api_price.cached_input_usd_per_mtok IS 'Price of a million cached prompt tokens [USD/Mtok]; source: price list';
COMMENT ON COLUMN api_price.model_name_raw IS 'The model as the price list spells it; source: price list';
COMMENT ON COLUMN api_price.context_tokens IS 'Context it is served with [tokens]; source: price list';
COMMENT ON COLUMN api_price.note IS 'What a reader should know; source: price list';
COMMENT ON COLUMN api_price.source_id IS 'Where the price comes from; source: source';
COMMENT ON COLUMN api_price.observed_at IS 'When the price was seen (UTC); source: landing or seed';
COMMENT ON COLUMN api_price.is_stale IS 'Whether observed_at is older than the source''s max_age_hours at build.built_at; source: build';
COMMENT ON COLUMN api_price.origin IS 'direct, aggregator or seed: the first there is stands; source: build';

CREATE TABLE api_price_history (
    provider_id VARCHAR NOT NULL,
    model_id VARCHAR,
    model_name_raw VARCHAR NOT NULL,
    valid_from TIMESTAMP NOT NULL,
    valid_to TIMESTAMP,
    last_seen_at TIMESTAMP,
    input_usd_per_mtok DOUBLE,
    output_usd_per_mtok DOUBLE,
    cached_input_usd_per_mtok DOUBLE,
    source_id VARCHAR NOT NULL
);
COMMENT ON TABLE api_price_history IS 'One row per provider, model and span of time in which its prices stood; source: landing';
COMMENT ON COLUMN api_price_history.provider_id IS 'Who bills it; source: provider';
COMMENT ON COLUMN api_price_history.model_id IS 'Model, where the raw name is known; source: name resolution';
COMMENT ON COLUMN api_price_history.model_name_raw IS 'The model as the price list spells it; source: price list';
COMMENT ON COLUMN api_price_history.valid_from IS 'When the prices were first seen (UTC); source: landing';
COMMENT ON COLUMN api_price_history.valid_to IS 'When others took their place; null: current (UTC); source: landing';
COMMENT ON COLUMN api_price_history.last_seen_at IS 'When the prices were last seen (UTC); source: landing, source_run';
COMMENT ON COLUMN api_price_history.input_usd_per_mtok IS 'Price of a million prompt tokens [USD/Mtok]; source: price list';
COMMENT ON COLUMN api_price_history.output_usd_per_mtok IS 'Price of a million output tokens [USD/Mtok]; source: price list';
COMMENT ON COLUMN api_price_history.cached_input_usd_per_mtok IS 'Price of a million cached prompt tokens [USD/Mtok]; source: price list';
COMMENT ON COLUMN api_price_history.source_id IS 'Where the price comes from; source: source';
