"""The big table: all explainers on all datasets whose floors are low, over several trainings."""
