"""The documented import path of `graphxai_data.training.train`."""

from graphxai_data.training.train import train as train
