"""Softmax layers and language models from files, folders and the hub."""
