-- What is a model made of?
FROM anatomy('Qwen/Qwen2.5-72B-Instruct');
