-- Which are the smallest single GPUs that hold a model, at each precision?
FROM smallest_gpus('Qwen/Qwen2.5-72B-Instruct', context := 8192);
