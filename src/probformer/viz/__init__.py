"""Pictures of what a model believes, from words and numbers: see `Picture` for their forms."""

from probformer.viz.arcs import Animation, Arcs, animation, arcs
from probformer.viz.heat import HeatMap, heat_map
from probformer.viz.labels import LabelTable, label_table
from probformer.viz.picture import Picture

__all__ = [
    "Animation",
    "Arcs",
    "HeatMap",
    "LabelTable",
    "Picture",
    "animation",
    "arcs",
    "heat_map",
    "label_table",
]
