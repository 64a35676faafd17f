-- How do I start it on two H100, and if that does not hold, what is the nearest that does?
SELECT
    l.engine_id,
    l.kind,
    l.reason,
    l.changed,
    l.command
FROM launch('Qwen/Qwen2.5-72B-Instruct', 'nvidia-h100-sxm', gpu_count := 2, context := 32768, users := 1) AS l;
