-- How this catalog came to be.

CREATE TABLE source_run (
    source_id VARCHAR NOT NULL,
    started_at TIMESTAMP NOT NULL,
    ended_at TIMESTAMP,
    status VARCHAR NOT NULL,
    payloads BIGINT,
    added BIGINT,
    bytes BIGINT,
    reason VARCHAR
);
COMMENT ON TABLE source_run IS 'One row per source and its newest runs: what was asked, what came; source: landing';
COMMENT ON COLUMN source_run.source_id IS 'Source; source: source';
COMMENT ON COLUMN source_run.started_at IS 'When the run began (UTC); source: harvest';
COMMENT ON COLUMN source_run.ended_at IS 'When the run ended (UTC); source: harvest';
COMMENT ON COLUMN source_run.status IS 'ok, unchanged, failed or skipped; source: harvest';
COMMENT ON COLUMN source_run.payloads IS 'Documents received [count]; source: harvest';
COMMENT ON COLUMN source_run.added IS 'Documents that were new [count]; source: harvest';
COMMENT ON COLUMN source_run.bytes IS 'Size of what was received [bytes]; source: harvest';
COMMENT ON COLUMN source_run.reason IS 'Why it failed or was skipped; source: harvest';

CREATE TABLE rejected (
    source_id VARCHAR NOT NULL,
    raw_text VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
COMMENT ON TABLE rejected IS 'One row per record that could not be used: never dropped silently, never in a mart; source: parsers';
COMMENT ON COLUMN rejected.source_id IS 'Where it came from; source: source';
COMMENT ON COLUMN rejected.raw_text IS 'The record as received, cut to what identifies it; source: landing';
COMMENT ON COLUMN rejected.reason IS 'One line for people; source: parser';

CREATE TABLE build (
    build_id VARCHAR NOT NULL,
    schema_version INTEGER NOT NULL,
    code_version VARCHAR NOT NULL,
    built_at TIMESTAMP NOT NULL,
    as_of_on DATE,
    inputs_sha256 VARCHAR NOT NULL,
    input_hashes MAP(VARCHAR, VARCHAR),
    build_seconds DOUBLE,
    row_counts MAP(VARCHAR, BIGINT)
);
COMMENT ON TABLE build IS 'One row: this build; source: fitmart build';
COMMENT ON COLUMN build.build_id IS 'Stamp in the file''s name; source: built_at';
COMMENT ON COLUMN build.schema_version IS 'Version of tables and columns [count]; source: warehouse';
COMMENT ON COLUMN build.code_version IS 'Version of fitmart that built it; source: package';
COMMENT ON COLUMN build.built_at IS 'The clock of all ages in this catalog (UTC); source: build';
COMMENT ON COLUMN build.as_of_on IS 'Day whose data was used; null: the newest; source: build --as-of';
COMMENT ON COLUMN build.inputs_sha256 IS 'Hash over all inputs: equal means nothing changed; source: input_hashes';
COMMENT ON COLUMN build.input_hashes IS 'Hash of each input; source: build';
COMMENT ON COLUMN build.build_seconds IS 'How long the build took [s]; source: build';
COMMENT ON COLUMN build.row_counts IS 'Rows of each table [count]; source: load';
