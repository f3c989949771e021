"""Evaluation of explanations: metrics per explainer, comparisons over seeds, the paper's tables."""
