"""Pictures of marginals and of models: each `Picture` can be SVG, HTML, TikZ or text."""

from probformer.viz.arcs import THRESHOLD, Animation, Arcs, animation, arcs
from probformer.viz.computation_graph import computation_graph
from probformer.viz.factor_graph import factor_graph
from probformer.viz.heat import HeatMap, heat_map
from probformer.viz.label_table import STRONGEST, LabelTable, label_table
from probformer.viz.picture import Picture, check_suffix
from probformer.viz.reliability import ReliabilityDiagram, reliability_diagram
from probformer.viz.tree import tree

__all__ = [
    "STRONGEST",
    "THRESHOLD",
    "Animation",
    "Arcs",
    "HeatMap",
    "LabelTable",
    "Picture",
    "ReliabilityDiagram",
    "animation",
    "arcs",
    "check_suffix",
    "computation_graph",
    "factor_graph",
    "heat_map",
    "label_table",
    "reliability_diagram",
    "tree",
]
