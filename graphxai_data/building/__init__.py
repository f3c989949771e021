"""Building: from a recipe and a seed to verified shards, and the proof that they are right."""
