"""A byte-level tokenizer, a GPT that returns its internals, and a training loop."""
