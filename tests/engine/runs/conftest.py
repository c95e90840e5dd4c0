import pytest

pytest.register_assert_rewrite("engine.runs.laws")
