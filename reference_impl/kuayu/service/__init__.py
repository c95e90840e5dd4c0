"""The reference service: HTTP, authentication and storage around the algorithms."""
