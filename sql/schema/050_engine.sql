-- Engines, their defaults, and what they run where.

CREATE TABLE engine (
    engine_id engine_id NOT NULL,
    name VARCHAR,
    version VARCHAR,
    url VARCHAR,
    source_id VARCHAR,
    observed_on DATE
);
COMMENT ON TABLE engine IS 'One row per inference engine; source: warehouse/seeds/engine.csv';
COMMENT ON COLUMN engine.engine_id IS 'Key: vllm, llama.cpp, mlx, sglang, tensorrt-llm, …; source: seed';
COMMENT ON COLUMN engine.name IS 'Name as written by its makers; source: seed';
COMMENT ON COLUMN engine.version IS 'Newest version whose rules are known; source: seed';
COMMENT ON COLUMN engine.url IS 'Where it lives; source: seed';
COMMENT ON COLUMN engine.source_id IS 'Where the row comes from; source: source';
COMMENT ON COLUMN engine.observed_on IS 'Day the facts were looked up; source: seed';

CREATE TABLE engine_default (
    engine_id engine_id NOT NULL,
    since_version VARCHAR,
    until_version VARCHAR,
    parameter VARCHAR NOT NULL,
    value VARCHAR,
    condition VARCHAR,
    source_id VARCHAR,
    url VARCHAR,
    observed_on DATE
);
COMMENT ON TABLE engine_default IS 'One row per engine, span of versions and parameter: the value used where a user gives none; source: warehouse/seeds/engine_default.csv';
COMMENT ON COLUMN engine_default.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN engine_default.since_version IS 'First version it holds for; null: always; source: engine''s source code';
COMMENT ON COLUMN engine_default.until_version IS 'First version it no longer holds for; null: still; source: engine''s source code';
COMMENT ON COLUMN engine_default.parameter IS 'Name of the setting; source: engine';
COMMENT ON COLUMN engine_default.value IS 'Default as text; source: engine''s source code';
COMMENT ON COLUMN engine_default.condition IS 'When this default applies; source: engine''s source code';
COMMENT ON COLUMN engine_default.source_id IS 'Where the row comes from; source: source';
COMMENT ON COLUMN engine_default.url IS 'Where it can be read; source: seed';
COMMENT ON COLUMN engine_default.observed_on IS 'Day the facts were looked up; source: seed';

CREATE TABLE engine_support (
    engine_id engine_id NOT NULL,
    gpu_architecture VARCHAR,
    precision_id VARCHAR NOT NULL,
    support support NOT NULL,
    since_version VARCHAR,
    until_version VARCHAR,
    source_id VARCHAR,
    vendor VARCHAR,
    gpu_ids VARCHAR,
    note VARCHAR,
    evidence VARCHAR,
    url VARCHAR,
    observed_on DATE
);
COMMENT ON TABLE engine_support IS 'One row per engine, GPU architecture (or GPUs), precision and span of versions; source: warehouse/seeds/engine_support.csv';
COMMENT ON COLUMN engine_support.engine_id IS 'Engine; source: engine';
COMMENT ON COLUMN engine_support.gpu_architecture IS 'Architecture; source: gpu';
COMMENT ON COLUMN engine_support.precision_id IS 'Precision, a family of them (gguf, exl2) or a KV format (kv-fp8); source: engine''s documentation';
COMMENT ON COLUMN engine_support.support IS 'native, weight_only, emulated, plugin, unsupported or unknown; source: engine''s documentation';
COMMENT ON COLUMN engine_support.since_version IS 'First version it holds for; null: always; source: engine''s documentation';
COMMENT ON COLUMN engine_support.until_version IS 'First version it no longer holds for; null: still; source: engine''s documentation';
COMMENT ON COLUMN engine_support.source_id IS 'Where the row comes from; source: source';
COMMENT ON COLUMN engine_support.vendor IS 'Vendor of the GPUs; source: gpu';
COMMENT ON COLUMN engine_support.gpu_ids IS 'GPUs joined by |; * every one, *AMD every one of that vendor; source: seed';
COMMENT ON COLUMN engine_support.note IS 'What a reader should know; source: seed';
COMMENT ON COLUMN engine_support.evidence IS 'documentation, source code, report; source: seed';
COMMENT ON COLUMN engine_support.url IS 'Where it can be read; source: seed';
COMMENT ON COLUMN engine_support.observed_on IS 'Day the facts were looked up; source: seed';
