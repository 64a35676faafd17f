-- Which precisions fit on one such GPU, how fast, and which GPU would each need?
FROM quantization_matrix('Qwen/Qwen2.5-72B-Instruct', 'nvidia-h100-sxm', context := 8192);
