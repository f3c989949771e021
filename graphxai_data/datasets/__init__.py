"""Builds as PyTorch Geometric datasets, and batches of them."""
