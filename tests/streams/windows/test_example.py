"""The example does what it says."""

from examples import alert_rule


def test_the_alert_rule_with_failures_is_the_alert_rule_without(capsys):
    alert_rule.main()
    assert capsys.readouterr().out.splitlines()[-1] == "29 alerts, the same as without any failure"
