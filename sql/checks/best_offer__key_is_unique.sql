-- The key of best_offer names one row.
SELECT
    gpu_id,
    gpu_count,
    commitment,
    count(*) AS copies
FROM best_offer
GROUP BY gpu_id, gpu_count, commitment
HAVING count(*) > 1;
