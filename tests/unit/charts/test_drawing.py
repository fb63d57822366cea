"""What charts share: rows that are copied and validated by nobody, and scripts that are put together once."""

import altair as alt
import vl_convert

from lab.charts import drawing

ROWS = [{"x": number, "y": number % 7} for number in range(20)]


def layered(data):
    """Two layers on the same data, in a chart of two panels."""
    line = alt.Chart(data).mark_line().encode(x="x:Q", y="y:Q")
    return alt.vconcat(line + line.mark_point(), line)


def test_rows_are_the_data_that_altair_makes_of_them():
    """The spec is that of plain inline data. However often charts are put together, nothing goes through the rows."""
    assert layered(drawing.inline(ROWS)).to_dict() == layered(alt.InlineData(values=ROWS)).to_dict()
    assert alt.Chart(drawing.inline(ROWS)).mark_line().copy(deep=True).data.values is ROWS


def test_scripts_are_put_together_once(tmp_path, monkeypatch):
    """The next session finds them in the user's cache."""
    asked = []
    monkeypatch.setenv("ELASTIC_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda script, vl_version: asked.append(script) or "let x = 'ü'")
    assert [drawing.scripts(), drawing.scripts()] == ["let x = 'ü'"] * 2
    assert len(asked) == 1
