-- Why does a model not fit on this GPU, and what would?
SELECT
    w.precision_id,
    w.gpu_count,
    w.verdict,
    w.reason,
    w.headroom_gib,
    w.fits_at_gpu_count
FROM why_not('Qwen/Qwen2.5-72B-Instruct', 'nvidia-h100-sxm', context := 8192) AS w
WHERE w.verdict <> 'fits';
