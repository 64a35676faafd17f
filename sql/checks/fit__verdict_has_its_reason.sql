-- A no says what stands in the way; a yes has nothing in the way, what it needs, and a user (null: no cache to hold).
SELECT
    model_id,
    precision_id,
    engine_id,
    gpu_id,
    gpu_count,
    context_tokens,
    verdict,
    limited_by
FROM fit
WHERE NOT CASE verdict
    WHEN 'no' THEN limited_by IS NOT NULL AND limited_by <> 'unknown'
    WHEN 'unknown' THEN coalesce(limited_by = 'unknown', FALSE)
    WHEN 'tight' THEN limited_by IS NULL AND required_bytes IS NOT NULL
    ELSE limited_by IS NULL AND required_bytes > 0 AND coalesce(headroom_bytes >= 0, FALSE) AND coalesce(users >= 1, TRUE)
END;
