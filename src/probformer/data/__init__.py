"""Sentences from files and from the built-in grammar; vocabularies; batches."""
