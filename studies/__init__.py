"""Studies with known truth, which maintainers run. Their results are in the folders beside this file."""
