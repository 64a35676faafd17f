-- The key of gpu names one row.
SELECT
    gpu_id,
    count(*) AS copies
FROM gpu
GROUP BY gpu_id
HAVING count(*) > 1;
