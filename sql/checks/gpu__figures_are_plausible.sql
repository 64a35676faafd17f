-- Memory, rates and shares are within what exists; a slip of a thousand or of bits and bytes is not.
SELECT
    gpu_id,
    memory_bytes,
    bandwidth_bytes_per_s,
    addressable_share,
    max_gpu_count
FROM gpu
WHERE
    memory_bytes NOT BETWEEN 2 ^ 30 AND 2 ^ 41
    OR torch_memory_bytes NOT BETWEEN 2 ^ 30 AND 2 ^ 41
    OR bandwidth_bytes_per_s NOT BETWEEN 1e10 AND 1e14
    OR bf16_flop_per_s NOT BETWEEN 1e11 AND 1e17
    OR addressable_share NOT BETWEEN 0.1 AND 1
    OR max_gpu_count < 1
    OR tdp_w NOT BETWEEN 1 AND 10000
    OR (is_unified_memory AND addressable_share IS NULL);
