"""Files: disk, URLs, TOML, raw inputs, stores and hashes. Knows nothing of graphs."""
