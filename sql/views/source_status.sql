CREATE VIEW source_status AS
WITH
served AS (
    SELECT
        m.source_id,
        m.observed_at
    FROM model AS m
    UNION ALL
    SELECT
        g.source_id,
        cast(g.observed_on AS TIMESTAMP) AS observed_at
    FROM gpu AS g
    UNION ALL
    SELECT
        p.source_id,
        cast(p.observed_on AS TIMESTAMP) AS observed_at
    FROM precision AS p
    UNION ALL
    SELECT
        e.source_id,
        cast(e.observed_on AS TIMESTAMP) AS observed_at
    FROM engine_support AS e
    UNION ALL
    SELECT
        v.source_id,
        cast(v.observed_on AS TIMESTAMP) AS observed_at
    FROM provider AS v
    UNION ALL
    SELECT
        o.source_id,
        o.observed_at
    FROM offer AS o
    UNION ALL
    SELECT
        a.source_id,
        a.observed_at
    FROM api_price AS a
),

newest AS (
    SELECT
        s.source_id,
        count(*) AS served_rows,
        max(s.observed_at) AS observed_at
    FROM served AS s
    GROUP BY s.source_id
),

refused AS (
    SELECT
        r.source_id,
        count(*) AS rejected_rows
    FROM rejected AS r
    GROUP BY r.source_id
),

run AS (
    SELECT
        r.source_id,
        max(r.started_at) AS started_at,
        arg_max(r.status, r.started_at) AS status,
        arg_max(coalesce(r.reason, ''), r.started_at) AS reason
    FROM source_run AS r
    GROUP BY r.source_id
)

SELECT
    s.source_id,
    s.publisher,
    s.kind,
    coalesce(r.status, 'bundled') AS status,
    coalesce(n.served_rows, 0) AS served_rows,
    coalesce(x.rejected_rows, 0) AS rejected_rows,
    n.observed_at,
    round(date_diff('minute', n.observed_at, b.built_at) / 60.0, 1) AS age_hours,
    s.max_age_hours,
    coalesce(date_diff('minute', n.observed_at, b.built_at) / 60.0 > s.max_age_hours, FALSE) AS is_stale,
    r.started_at AS last_run_at,
    nullif(r.reason, '') AS reason,
    s.needs_key
FROM source AS s
CROSS JOIN build AS b
LEFT JOIN newest AS n ON s.source_id = n.source_id
LEFT JOIN refused AS x ON s.source_id = x.source_id
LEFT JOIN run AS r ON s.source_id = r.source_id;
COMMENT ON VIEW source_status IS
'One row per source: its last run, the rows of it that serve, and how old they were at the build; source: source, source_run, rejected and the tables of facts';
COMMENT ON COLUMN source_status.source_id IS 'Source; source: source';
COMMENT ON COLUMN source_status.publisher IS 'Who publishes it; source: source';
COMMENT ON COLUMN source_status.kind IS 'What it tells about; source: source';
COMMENT ON COLUMN source_status.status IS 'Its last run: ok, unchanged, failed or skipped; bundled: never asked; source: source_run';
COMMENT ON COLUMN source_status.served_rows IS 'Rows of it in the catalog [count]; source: tables of facts';
COMMENT ON COLUMN source_status.rejected_rows IS 'Records of it that could not be used [count]; source: rejected';
COMMENT ON COLUMN source_status.observed_at IS 'When its newest row was seen (UTC); source: tables of facts';
COMMENT ON COLUMN source_status.age_hours IS 'Age of that at the build [hours]; source: build';
COMMENT ON COLUMN source_status.max_age_hours IS 'Older than this is stale [hours]; source: source';
COMMENT ON COLUMN source_status.is_stale IS 'Whether its newest row was too old at the build; source: source';
COMMENT ON COLUMN source_status.last_run_at IS 'When it was last asked (UTC); source: source_run';
COMMENT ON COLUMN source_status.reason IS 'Why that run failed or was skipped; source: source_run';
COMMENT ON COLUMN source_status.needs_key IS 'Environment variable that turns it on; source: source';
