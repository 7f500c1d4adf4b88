"""Readers: one module per format, each a `Reader`; text, rows and lifecycles are what they share."""
