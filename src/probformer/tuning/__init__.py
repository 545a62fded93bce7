"""Search for settings with Optuna: `probformer tune`."""

from probformer.errors import require_packages

require_packages("tuning", "optuna", "probformer[tune]")
