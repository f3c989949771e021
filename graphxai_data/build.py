"""The documented import path of `graphxai_data.building.build`."""

from graphxai_data.building.build import build as build
from graphxai_data.building.plan import make_plan as make_plan
