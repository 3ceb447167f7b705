"""How many rankings a low-rank softmax can realise, which classes can never win, and the proof for each."""
