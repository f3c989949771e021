"""Training: one loop, its loss, its state on disk, and checkpoints."""
