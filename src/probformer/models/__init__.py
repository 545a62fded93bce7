"""Modules: the probabilistic transformer, the transformers beside it, and read-outs."""
