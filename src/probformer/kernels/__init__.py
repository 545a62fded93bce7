from probformer.errors import require_packages

require_packages("probformer.kernels", "triton", "triton")
