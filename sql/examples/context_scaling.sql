-- How does the KV cache grow with the context, at 16, 8 and 4 bit?
FROM context_scaling('Qwen/Qwen2.5-72B-Instruct');
