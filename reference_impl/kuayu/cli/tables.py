"""The table that all commands print."""

from rich.table import Table


def plain_table(*headings: str) -> Table:
    """A table without lines; a heading that begins with ``>`` has its column aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        right = heading.startswith(">")
        table.add_column(heading.removeprefix(">"), justify="right" if right else "left")
    return table
