"""Probformer in Hugging Face transformers: importing this registers its Auto classes."""

from probformer.errors import MissingPackage

try:
    import transformers
except ModuleNotFoundError:
    raise MissingPackage("probformer.hf", "transformers", "probformer[hf]") from None

from probformer.hf.configuration import ProbformerConfig
from probformer.hf.models import (
    ProbformerForMaskedLM,
    ProbformerForSequenceClassification,
    ProbformerForTokenClassification,
    ProbformerModel,
)
from probformer.hf.tokenizer import ProbformerTokenizer

__all__ = [
    "ProbformerConfig",
    "ProbformerForMaskedLM",
    "ProbformerForSequenceClassification",
    "ProbformerForTokenClassification",
    "ProbformerModel",
    "ProbformerTokenizer",
]

transformers.AutoConfig.register(ProbformerConfig.model_type, ProbformerConfig)
transformers.AutoTokenizer.register(ProbformerConfig, ProbformerTokenizer)
for auto_class, model_class in (
    (transformers.AutoModel, ProbformerModel),
    (transformers.AutoModelForMaskedLM, ProbformerForMaskedLM),
    (transformers.AutoModelForTokenClassification, ProbformerForTokenClassification),
    (transformers.AutoModelForSequenceClassification, ProbformerForSequenceClassification),
):
    auto_class.register(ProbformerConfig, model_class)
