"""The documented import path of `graphxai_data.evaluation.comparison`."""

from graphxai_data.evaluation.comparison import compare as compare
from graphxai_data.evaluation.comparison import sweep as sweep
