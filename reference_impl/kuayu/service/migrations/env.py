"""Alembic's entry: migrations run on the connection that the service hands over."""

from alembic import context

from kuayu.service.storage.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
context.run_migrations()
