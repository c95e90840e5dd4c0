"""A table keeps every cell, and knows its columns of figures."""

import pytest
from conformance.rendering.plotted import table as body

from kuayu_conformance.rendering.view import table
from kuayu_schemas.models import ReportTable


@pytest.mark.parametrize(
    ("cells", "figures"),
    [
        (["12", "1 234", "−3.5"], True),
        (["5.2 %", "—", ""], True),
        (["5.2 % (4.1–6.3)", "< 0.1 %"], True),
        (["1.2e-7", "2·10⁻⁷"], True),
        (["3/18", "18/18"], True),
        (["V100", "3090"], False),
        (["2080 Ti"], False),
        (["—", ""], False),
        ([], False),
    ],
)
def test_a_column_holds_figures_where_every_cell_does(cells: list[str], figures: bool) -> None:
    rows = [{"cells": ["name", cell]} for cell in cells]
    shown = table(ReportTable.model_validate(body(columns=["of what", "how much"], rows=rows)))
    assert shown.head[1].figure is figures
    assert all(row[1].figure is figures for row in shown.rows)


def test_no_cell_is_lost_where_rows_and_headings_differ_in_length() -> None:
    rows = [{"cells": []}, {"cells": ["a", "b", "c"]}]
    shown = table(ReportTable.model_validate(body(columns=["one"], rows=rows)))
    assert [cell.text for cell in shown.head] == ["one", "", ""]
    assert [[cell.text for cell in row] for row in shown.rows] == [["", "", ""], ["a", "b", "c"]]


def test_a_table_may_be_empty() -> None:
    shown = table(ReportTable.model_validate(body(columns=[], rows=[])))
    assert shown.head == shown.rows == ()
