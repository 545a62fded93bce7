"""Run folders: what is in them, how they are read, and what is made of them."""
