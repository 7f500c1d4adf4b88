"""Hypothesis runs the same examples every time. To look further: pytest --hypothesis-profile=search."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("steady")
