"""What the variables of a block do with their scores: independent rows, or trees."""

from probformer.crf.structures.by_channel import ByChannel
from probformer.crf.structures.choice import (
    head_structure,
    label_structure,
    row_structure,
    structure_named,
)
from probformer.crf.structures.independent import Independent, row_entropy
from probformer.crf.structures.labelled import Labelled, summed_over_labels
from probformer.crf.structures.of_sentence import OfSentence
from probformer.crf.structures.projective_trees import ProjectiveTrees
from probformer.crf.structures.spanning_trees import SpanningTrees
from probformer.crf.structures.structure import Structure
from probformer.crf.structures.trees import Trees

__all__ = [
    "ByChannel",
    "Independent",
    "Labelled",
    "OfSentence",
    "ProjectiveTrees",
    "SpanningTrees",
    "Structure",
    "Trees",
    "head_structure",
    "label_structure",
    "row_entropy",
    "row_structure",
    "structure_named",
    "summed_over_labels",
]
