"""A package, so that pytest does not confuse the fixtures of the pages with those of the tests."""
