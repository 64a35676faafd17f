-- What does fine-tuning take, part by part, and which is the smallest GPU for it?
FROM finetuning('Qwen/Qwen2.5-72B-Instruct', sequence := 2048);
