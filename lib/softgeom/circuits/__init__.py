"""What the parts of a transformer language model compute, as identities that hold on real weights."""
