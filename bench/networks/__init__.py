"""Models of the bench, written out so that it needs nothing but PyTorch; weights are random,
dropout is left out."""
