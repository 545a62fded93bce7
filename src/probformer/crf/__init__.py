"""The model of the paper: a conditional random field over labels and heads, and its inference."""
