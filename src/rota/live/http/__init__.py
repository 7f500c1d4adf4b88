"""The HTTP interface: server, authentication, validation, client."""
