-- How much smaller is the KV cache than with plain multi-head attention, and what does 8 bit save?
FROM kv_savings('Qwen/Qwen2.5-72B-Instruct', context := 32768);
