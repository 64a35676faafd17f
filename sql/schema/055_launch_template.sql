-- How each engine is started.

CREATE TABLE launch_template (
    engine_id engine_id NOT NULL,
    vendor VARCHAR,
    precision_id precision_id,
    kind VARCHAR NOT NULL,
    template VARCHAR NOT NULL,
    source_id VARCHAR,
    url VARCHAR,
    observed_on DATE
);
COMMENT ON TABLE launch_template IS 'One row per engine and part of its command: what launch() fills in; source: warehouse/seeds/launch_template.csv';
COMMENT ON COLUMN launch_template.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN launch_template.vendor IS 'Only for GPUs of this vendor; null: any; source: seed';
COMMENT ON COLUMN launch_template.precision_id IS 'Only for this precision; null: any; source: precision';
COMMENT ON COLUMN launch_template.kind IS 'command, docker, flags (what a precision adds), extended (what a context beyond the configured one adds), kv_16 and kv_8 (the engine''s words for the KV cache''s type); source: seed';
COMMENT ON COLUMN launch_template.template IS 'Text with {model} the model, {repository} the repository at that precision, {file} a GGUF file, {name} a folder, {gpus}, {context} of one user, {all_context} of all users, {users}, {kv}, {flags}, {utilization}, {version}, {factor}, {original}, {rope_theta}; source: the engine''s documentation';
COMMENT ON COLUMN launch_template.source_id IS 'Where it was looked up; source: source';
COMMENT ON COLUMN launch_template.url IS 'Page it was looked up on; source: seed';
COMMENT ON COLUMN launch_template.observed_on IS 'Day it was looked up; source: seed';
