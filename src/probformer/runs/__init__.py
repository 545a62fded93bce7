"""Run folders: their files, loading, prediction, results and model cards."""
