-- How much memory should I plan for, from one user of a short context to four of a long one?
FROM planning_range('Qwen/Qwen2.5-72B-Instruct', context_from := 8192, context_to := 32768, users := 4);
