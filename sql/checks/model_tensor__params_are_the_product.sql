-- params = rows × columns × layers × copies.
SELECT
    model_id,
    tensor,
    params
FROM model_tensor
WHERE params <> rows * columns * layer_count * coalesce(copies, 1);
