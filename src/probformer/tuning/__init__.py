from probformer.errors import require_packages

require_packages("tuning", "optuna", "probformer[tune]")
