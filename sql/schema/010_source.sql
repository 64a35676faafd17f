-- Where facts come from: every other row names its source here.

CREATE TABLE source (
    source_id VARCHAR NOT NULL,
    publisher VARCHAR NOT NULL,
    url VARCHAR,
    license VARCHAR,
    license_url VARCHAR,
    attribution VARCHAR,
    kind VARCHAR NOT NULL,
    may_ship BOOLEAN,
    max_age_hours BIGINT,
    needs_key VARCHAR
);
COMMENT ON TABLE source IS 'One row per source of facts. Every source_id elsewhere points here; source: warehouse/seeds/source.csv';
COMMENT ON COLUMN source.source_id IS 'Key: a short name of the source; source: seed';
COMMENT ON COLUMN source.publisher IS 'Who publishes it; source: seed';
COMMENT ON COLUMN source.url IS 'Where a person can look it up; source: seed';
COMMENT ON COLUMN source.license IS 'SPDX id or name of the terms the data is under; source: publisher';
COMMENT ON COLUMN source.license_url IS 'Where those terms are written; source: publisher';
COMMENT ON COLUMN source.attribution IS 'Words the license asks to be shown; source: publisher';
COMMENT ON COLUMN source.kind IS 'model, price, token_price, gpu, engine, provider or measurement; source: seed';
COMMENT ON COLUMN source.may_ship IS 'Whether its rows may be handed on with fitmart; source: reading of the license';
COMMENT ON COLUMN source.max_age_hours IS 'Older than this its rows are stale; null: facts that do not age [hours]; source: seed';
COMMENT ON COLUMN source.needs_key IS 'Environment variable that turns it on; null: open to all; source: publisher';
