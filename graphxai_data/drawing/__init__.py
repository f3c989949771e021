"""Drawings of graphs, molecules, digits and charts, for cards, datasets, explanations and pages."""
