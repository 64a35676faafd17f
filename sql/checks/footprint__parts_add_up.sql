-- The parts are the whole; the vision tower of a GGUF is a file of its own.
SELECT
    w.model_id,
    w.precision_id,
    w.weights_total_bytes
FROM footprint AS w
INNER JOIN precision AS p ON w.precision_id = p.precision_id
WHERE
    w.weights_total_bytes <> w.embedding_bytes + w.attention_bytes + w.mlp_bytes + w.experts_bytes + w.norm_bytes
    + w.lm_head_bytes + if(p.container = 'gguf', 0, w.vision_bytes);
