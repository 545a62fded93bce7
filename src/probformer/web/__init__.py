from probformer.errors import require_packages

require_packages("the explorer", "fastapi uvicorn", "probformer[explore]")
