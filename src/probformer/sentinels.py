"""What a negative number means where the position of a head stands, everywhere in the library."""

ROOT = -1
"""The word's head is ROOT: it hangs from no other word."""
UNOBSERVED = -2
"""The head is not known: the data has none, or inference is to find it. In the other index tensors
of `Evidence` likewise: this variable is not observed."""
