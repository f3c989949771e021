"""The documented import path of `graphxai_data.evaluation.evaluate`."""

from graphxai_data.evaluation.evaluate import evaluate as evaluate
