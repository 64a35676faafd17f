-- Which GPUs for production, for a balanced set-up, for a proof of concept?
FROM scenario_configuration('Qwen/Qwen2.5-72B-Instruct', context := 8192);
