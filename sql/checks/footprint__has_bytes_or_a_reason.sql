-- A footprint has its bytes, or says why not; a band holds its figure.
SELECT
    model_id,
    precision_id,
    weights_total_bytes,
    file_bytes
FROM footprint
WHERE
    (weights_total_bytes IS NULL AND error IS NULL)
    OR weights_total_bytes <= 0
    OR NOT (file_bytes BETWEEN file_bytes_low AND file_bytes_high);
