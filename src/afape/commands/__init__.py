"""The commands of afape. They parse, call and print; each imports scikit-learn only when it runs."""
