"""Speed compared with what people use today, as ratios measured in one run."""
