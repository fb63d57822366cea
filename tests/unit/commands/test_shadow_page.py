"""The page of shadow: what is printed and the curves, in one file that opens offline; and the traffic that was played."""

import html
import json
import re

import pytest

from lab.__main__ import main
from lab.commands.text import number
from lab.foresee.candidate import CANDIDATE, LIVE, SIMULATED
from lab.inputs import profile
from tests.unit.foresee.test_explain import ORDERS_FILE
from tests.unit.foresee.test_shadow import WAVE, saved


def test_the_page_has_what_is_printed_and_the_curves(tmp_path, capsys):
    """The traffic that was played is a profile for other commands; without a pod's rate there is none."""
    page, traffic = tmp_path / "page.html", tmp_path / "traffic.yaml"
    asked = ["shadow", f"--watched={saved(tmp_path, WAVE)}", f"--candidate={ORDERS_FILE}", f"--page={page}"]
    pods = ["--pod-rate=100", "--start-s=10", "--partitions=12"]
    assert main([*asked, *pods, f"--save-profile={traffic}", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    shown = text.rpartition("<h1>Shadow of orders</h1>")[2]
    assert shown.count('<div id="vega-chart">') == 1
    assert f"Of {answer['trust']['judged']} syncs the model decided" in shown
    assert all(f">{number(answer['closed'][one]['pod_minutes'])}<" in shown for one in ("live", "simulated", "candidate"))
    assert all(name in shown for name in (LIVE, SIMULATED, CANDIDATE, "Traffic (messages/s)", "Replicas (pods)"))
    assert not [
        one for one in ("<script src", "<link", 'src="http') if one in shown or one in text.partition("<body>")[0][:2000]
    ]
    rates = [step.rate for step in profile.load(traffic).steps]
    assert (min(rates), max(rates)) == pytest.approx((answer["closed"]["lowest_rate"], answer["closed"]["highest_rate"]))
    assert main([*asked, f"--save-profile={traffic}"]) == 2
    assert "--pod-rate: missing; allowed: what --save-profile needs" in capsys.readouterr().err
    assert main(["shadow", "--backtest=8d", *pods, f"--save-profile={traffic}"]) == 2
    assert "no profile is longer" in capsys.readouterr().err


def test_the_page_without_a_verdict_has_no_curves(tmp_path, capsys):
    """It has the reason."""
    page = tmp_path / "page.html"
    assert main(["shadow", f"--watched={saved(tmp_path, WAVE[:5])}", f"--page={page}"]) == 1
    reason = re.findall(r"no verdict: (.*)", capsys.readouterr().out)[0]
    text = page.read_text()
    assert f"<p>{html.escape(reason)}</p>" in text
    assert "<b>No verdict.</b>" in text
    assert "<script" not in text
