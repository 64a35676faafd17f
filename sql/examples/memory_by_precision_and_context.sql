-- How much memory does a model need, by precision and context, with weights, KV cache and overhead apart?
FROM memory_by_context('Qwen/Qwen2.5-72B-Instruct')
WHERE context_tokens IN (8192, 32768);
