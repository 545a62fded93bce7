"""Negative numbers in tensors of heads, which otherwise hold positions of words, counted from 0."""

ROOT = -1
"""The head of the word is ROOT, and no other word."""
UNOBSERVED = -2
"""The head is not known: the data has none, or inference is to compute its distribution. In the
other index tensors of `Evidence`: the variable is not observed."""
