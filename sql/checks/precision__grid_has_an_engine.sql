-- A precision of the grid names the engine that runs it.
SELECT precision_id
FROM precision
WHERE is_in_grid AND engine_id IS NULL;
