"""The steps of an evaluation: plan, walk, fit, reduce, bootstrap, warn. One file per step."""
