-- What should I run it on: the smallest, the fastest, the cheapest to buy or to rent?
FROM recommended_hardware('Qwen/Qwen2.5-72B-Instruct', context := 8192, users := 2);
