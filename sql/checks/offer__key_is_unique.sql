-- The key of offer names one row.
SELECT
    offer_id,
    count(*) AS copies
FROM offer
GROUP BY offer_id
HAVING count(*) > 1;
