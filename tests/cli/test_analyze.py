"""`rota analyze`."""

import importlib
import json
import math

import pytest

import rota
from rota.cli import main
from rotas import paper_rota
from systems import EXAMPLES

PAPER, WEB, VM = (str(EXAMPLES / f"{name}.toml") for name in ("paper", "web", "vm"))


@pytest.fixture
def policy(tmp_path):
    """Saves a policy and returns the name of its file; the paper's nMSR at α = 0.06 unless others are given."""

    def save(policy=None):
        file = tmp_path / "policy.json"
        rota.save_policy(policy or paper_rota("none", 0.06), file)
        return str(file)

    return save


def test_tables(policy, capsys):
    """The tables show the rota, and per type the load, the bounds, the prediction, and the exact E[Q] and E[T]."""
    assert main(["analyze", PAPER, policy()]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[:9] == [
        "Preemption none, switching rate 0.06: 9 states, 87.9% of the time working",
        "",
        "Rota",
        "  working time  jobs together",
        "        50.00%  2 × type3",
        "        50.00%  1 × type1 + 4 × type2",
        "",
        "Jobs in the system",
        "           load  E[Q] at least  at most  predicted    exact     E[T]",
    ]
    answer = rota.analyze(rota.read_system(PAPER), paper_rota("none", 0.06))
    for i, exact in enumerate(["139.447", "170.061", "251.672"]):
        cheap = [f"{values[i]:.5g}" for values in (answer.lower, answer.upper, answer.prediction)]
        row = [f"type{i + 1}", f"{answer.load[i]:.4f}", *cheap, exact, f"{answer.response_time[i]:.6g}"]
        assert lines[9 + i].split() == row
    assert lines[12] == ""
    assert lines[13].startswith(f"Mean response time {561.18057 / 3.15:.6g} (relative error about ")  # Little's law
    assert lines[14:] == ["Arrivals can grow by a factor of up to 1.035 under this policy."]


FREE = {"policy", "names", "states", "working_fraction", "load", "service_share", "stable", "largest_scaling", "remarks"}
CHEAP = {"lower", "upper", "prediction", "heavy_traffic_constant"}
EXACT = {"exact", "variance", "decay_rate", "response_time", "mean_response_time", "accuracy"}


def test_json_has_the_python_names(policy, capsys):
    """With --json every field has the name and the value of `Analysis`, or of its process."""
    assert main(["analyze", PAPER, policy(), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    fields = json.loads(printed.out)
    assert set(fields) == FREE | CHEAP | EXACT
    answer = rota.analyze(rota.read_system(PAPER), rota.read_policy(policy()))
    for name in ("load", "lower", "upper", "prediction", "heavy_traffic_constant", "exact", "variance", "response_time"):
        assert fields[name] == getattr(answer, name).tolist()
    for name in ("stable", "largest_scaling", "mean_response_time", "accuracy"):
        assert fields[name] == getattr(answer, name)
    assert (fields["states"], fields["working_fraction"]) == (9, answer.process.working_fraction)
    assert fields["decay_rate"] == [answer.queue_length(i).decay_rate for i in range(3)]
    assert fields["names"] == ["type1", "type2", "type3"]
    assert rota.policy.policy_from_json(json.dumps(fields["policy"])) == rota.read_policy(policy())
    assert fields["exact"] == pytest.approx([139.44740, 170.06116, 251.67201], rel=1e-7)


def test_without_exact_values(policy, capsys):
    """--no-exact leaves the exact columns and fields out and gives the range of E[T]."""
    assert main(["analyze", PAPER, policy(), "--no-exact"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "           load  E[Q] at least  at most  predicted" in lines
    answer = rota.analyze(rota.read_system(PAPER), paper_rota("none", 0.06))
    low, high, predicted = (f"{answer.little(values):.5g}" for values in (answer.lower, answer.upper, answer.prediction))
    assert f"Mean response time between {low} and {high}, predicted {predicted}." in lines
    assert main(["analyze", PAPER, policy(), "--no-exact", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == FREE | CHEAP


def test_quantiles(policy, capsys):
    """--quantiles adds a column for each level to the table, and the same numbers to the object of --json; without it neither is there."""
    answer = rota.analyze(rota.read_system(PAPER), paper_rota("none", 0.06))
    times = {p: [answer.response_time_distribution(i).quantile(p) for i in range(3)] for p in (0.5, 0.95, 0.999)}
    assert main(["analyze", PAPER, policy(), "--quantiles", "0.5", "0.95", "0.999"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[8].endswith("E[T]    T 50%    T 95%  T 99.9%")
    for i in range(3):
        assert [float(cell) for cell in lines[9 + i].split()[-3:]] == pytest.approx([times[p][i] for p in times], rel=1e-5)
    assert main(["analyze", PAPER, policy(), "--quantiles", "0.5", "0.95", "0.999", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert set(fields) == FREE | CHEAP | EXACT | {"type_response_time_quantiles"}
    assert fields["type_response_time_quantiles"] == {f"{p:g}": times[p] for p in times}


def test_quantiles_of_a_type_that_never_arrives(policy, tmp_path, capsys):
    """It has none: null in JSON."""
    file = tmp_path / "two.toml"
    system = rota.read_system(PAPER)
    system.replace(arrival_rate=[0.0, *system.arrival_rate[1:]]).save(file)
    assert main(["analyze", str(file), policy(), "--quantiles", "0.95", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["type_response_time_quantiles"]["0.95"]
    assert found[0] is None
    assert min(found[1:]) > 0


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--quantiles", "95"], "--quantiles: must be at least 0 and below 1"),
        (["--quantiles", "0.95", "--no-exact"], "--quantiles: are exact values: they do not go with --no-exact"),
    ],
)
def test_wrong_quantiles(options, complaint, policy, capsys):
    """A level beyond 1, and quantiles without exact values, end with 2."""
    assert main(["analyze", PAPER, policy(), *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert complaint in printed.err


def test_quantiles_of_phase_type_sizes(policy, tmp_path, capsys):
    """They are for exponential sizes: 1, with the way out, and nothing on standard output."""
    file = tmp_path / "phases.toml"
    rota.System([2], [[1]], [1.2], sizes=[rota.Erlang(mean=1.0, phases=2)], preemption="full").save(file)
    assert main(["analyze", str(file), policy(rota.MSR([[1], [2]], [0.5, 0.5], switching_rate=1.0)), "--quantiles", "0.95"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "is for exponential sizes" in printed.err


def test_unstable(policy, capsys):
    """An unstable policy ends with 1: its rota and loads are shown, and which type, how far and what to do."""
    file = policy(paper_rota("none", 0.5))
    assert main(["analyze", PAPER, file]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("rota: load 1.2")
    assert "of type 'type1' is not below 1: scale arrivals by less than 0.7" in printed.err
    assert "or let the policy switch less often" in printed.err
    assert "Jobs in the system" not in printed.out
    assert main(["analyze", PAPER, file, "--json"]) == 1
    fields = json.loads(capsys.readouterr().out)
    assert set(fields) == FREE
    assert fields["stable"] is False
    assert max(fields["load"]) == pytest.approx(1 / fields["largest_scaling"], rel=1e-12)


def test_a_type_that_is_never_served(policy, capsys):
    """A type that arrives and is in no schedule has an infinite load: null in JSON, and words on standard error."""
    assert main(["analyze", PAPER, policy(rota.MSR([[1, 4, 0]])), "--json"]) == 1
    printed = capsys.readouterr()
    fields = json.loads(printed.out)
    assert fields["load"][2] is None
    assert fields["largest_scaling"] == 0
    assert printed.err == "rota: type 'type3' arrives but is in no schedule of the policy\n"


def test_a_type_that_never_arrives(policy, tmp_path, capsys):
    """It has no response time: null in JSON."""
    file = tmp_path / "two.toml"
    system = rota.read_system(PAPER)
    system.replace(arrival_rate=[0.0, *system.arrival_rate[1:]]).save(file)
    assert main(["analyze", str(file), policy(), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["exact"][0], fields["response_time"][0]) == (0, None)
    assert fields["mean_response_time"] == pytest.approx(sum(fields["exact"]) / 2.7, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------ sizes


def web_policy():
    """A rota for the web example."""
    return rota.design_policy(rota.read_system(WEB), objective="load")


def test_lognormal_sizes(policy, capsys):
    """A lognormal size has no analysis: the end is 1, with the way out."""
    assert main(["analyze", WEB, policy(web_policy())]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("rota: type 'batch' has lognormal sizes: analysis needs exponential or phase-type ones.")


def test_taken_as_exponential(policy, capsys):
    """--exponential takes every size as exponential with its mean."""
    assert main(["analyze", WEB, policy(web_policy()), "--exponential", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    answer = rota.analyze(rota.read_system(WEB), web_policy(), sizes="exponential")
    assert fields["exact"] == answer.exact.tolist()


def test_phase_type_sizes(policy, tmp_path, capsys):
    """Phase-type sizes with preemption are exact, without a prediction: null in JSON, no column in the table."""
    file = tmp_path / "phases.toml"
    system = rota.System([2], [[1]], [1.2], sizes=[rota.Erlang(mean=1.0, phases=2)], preemption="full")
    system.save(file)
    saved = policy(rota.MSR([[1], [2]], [0.5, 0.5], switching_rate=1.0))
    assert main(["analyze", str(file), saved, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["prediction"] is None
    assert fields["lower"][0] < fields["exact"][0] < fields["upper"][0]
    assert main(["analyze", str(file), saved]) == 0
    assert "predicted" not in capsys.readouterr().out
    assert main(["analyze", str(file), saved, "--no-exact"]) == 0
    assert "predicted" not in capsys.readouterr().out


def test_phase_type_sizes_without_preemption(policy, tmp_path, capsys):
    """Where completions of phase-type jobs move the process there is no analysis: 1, with the way out."""
    file = tmp_path / "phases.toml"
    rota.System([2], [[1]], [1.2], sizes=[rota.Erlang(mean=1.0, phases=2)]).save(file)
    assert main(["analyze", str(file), policy(rota.MSR([[1], [2]], [0.5, 0.5], "none", 1.0))]) == 1
    assert "its completions move the process" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------------ bad policies


def test_a_policy_of_another_system(policy, capsys):
    """A policy with other types ends with 2 and names both."""
    assert main(["analyze", VM, policy()]) == 2
    assert "candidates: needs 4 counts per candidate, as the system has 4 types" in capsys.readouterr().err
    assert main(["analyze", WEB, policy(paper_rota("none", 0.06, names=["type1", "type2", "type3"])), "--exponential"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "types: differ from those of the system (page, report, batch)" in printed.err


def test_a_policy_that_does_not_fit(policy, capsys):
    """A candidate beyond the server ends with 1 and says what it lacks."""
    assert main(["analyze", PAPER, policy(rota.MSR([[3, 4, 0]]))]) == 1
    assert "[3, 4, 0] does not fit the server: it needs cores 25 of 20, memory_gb 25 of 15" in capsys.readouterr().err


def test_a_policy_with_backfilling(policy, capsys):
    """Backfilling looks at the queues, so there is no analysis: 1."""
    assert main(["analyze", PAPER, policy(paper_rota("none", 0.06, backfill=True))]) == 1
    assert "backfilling depends on the queues" in capsys.readouterr().err


def test_an_improved_rota(policy, capsys):
    """Of a policy that looks at the queues it says what is proved: over all jobs, in words and as fields."""
    exact = rota.analyze(rota.read_system(PAPER), paper_rota("none", 0.06)).mean_response_time
    file = policy(rota.Improved(paper_rota("none", 0.06), backfill=True))
    assert main(["analyze", PAPER, file]) == 0
    printed = capsys.readouterr().out
    assert "Jobs in the system under improved nMSR+backfill" in printed
    assert f"Mean response time at most {exact:.6g}, proved: that of the rota it improves." in printed
    assert main(["analyze", PAPER, file, "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["mean_response_time_upper"] == pytest.approx(exact)
    assert fields["policy"]["policy"] == "improved"
    assert not fields["per_type"]
    assert "proved" in fields["remarks"][0]


def test_full_preemption_with_backfilling(policy, capsys):
    """No job ends later than without backfilling, so the exact values of that bound each type, and its quantiles."""
    answer = rota.analyze(rota.read_system(PAPER), paper_rota("full", 2.0))
    file = policy(paper_rota("full", 2.0, backfill=True))
    assert main(["analyze", PAPER, file, "--quantiles", "0.95"]) == 0
    printed = capsys.readouterr().out
    assert "no job ends later than under the same rota without backfilling" in printed
    assert all(f"{t:.6g}" in printed for t in answer.response_time)
    assert "T 95% at most" in printed
    assert main(["analyze", PAPER, file, "--json", "--quantiles", "0.95"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["upper"] == pytest.approx(answer.exact.tolist())
    assert fields["type_response_time_quantiles_upper"]["0.95"] == pytest.approx(answer.type_response_time_quantiles([0.95])[0.95].tolist())


def test_a_guarantee_needs_exact_values(policy, capsys):
    """Without exact values nothing is left to say, and quantiles of an improved rota are not proved."""
    file = policy(rota.Improved(paper_rota("none", 0.06)))
    assert main(["analyze", PAPER, file, "--no-exact"]) == 2
    assert "--no-exact: leaves nothing" in capsys.readouterr().err
    assert main(["analyze", PAPER, file, "--quantiles", "0.95"]) == 1
    assert "not for its law: simulate" in capsys.readouterr().err


def test_an_unstable_base(policy, capsys):
    """Nothing is proved of it: 1."""
    assert main(["analyze", PAPER, policy(rota.Improved(paper_rota("none", 5.0)))]) == 1
    assert "nothing is proved of improved nMSR" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: "", "file: is not JSON"),
        (lambda text: "[1, 2]", "file: is not a policy of Rota"),
        (lambda text: text.replace('"rota_policy": 1', '"rota_policy": 7'), "rota_policy: this release reads version 1"),
        (lambda text: text.replace("0.06", "-0.06"), "switching_rate: must be greater than 0 (got -0.06)"),
        (lambda text: text.replace('"type3": 2', '"gpu": 2'), "candidates.0.jobs.gpu: no such type (there are: type1, type2, type3)"),
        (lambda text: text.replace('"weight": 0.5', '"weight": 0.4'), "weights: must sum to 1 (got 0.8)"),
        (lambda text: text.replace('"none"', '"never"'), "preemption: must be"),
    ],
    ids=["empty", "list", "version", "rate", "type", "weights", "preemption"],
)
def test_a_broken_policy(change, complaint, policy, tmp_path, capsys):
    """A broken policy ends with 2: the file, the place and the rule on standard error, no data, no traceback."""
    file = tmp_path / "broken.json"
    with open(policy(), encoding="utf-8") as good:
        file.write_text(change(good.read()), encoding="utf-8")
    assert main(["analyze", PAPER, str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"rota: {file}: 1 problem\n")
    assert complaint in printed.err
    assert "Traceback" not in printed.err


def test_a_missing_file(policy, tmp_path, capsys):
    """A missing system or policy ends with 2."""
    for files in ([PAPER, str(tmp_path / "none.json")], [str(tmp_path / "none.toml"), policy()]):
        assert main(["analyze", *files]) == 2
        assert "cannot be read: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[PAPER], [], [PAPER, PAPER, PAPER], [PAPER, PAPER, "--quickly"]], ids=len)
def test_wrong_use(arguments, capsys):
    """Missing and superfluous arguments end with 2 and print no data."""
    assert main(["analyze", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err


def test_a_large_process_is_announced(policy, tmp_path, capsys, monkeypatch):
    """Where exact values are estimated to take a while, a remark on standard error says so; --no-exact has nothing to announce."""
    file = tmp_path / "large.toml"
    rota.System([401], [[1], [1], [401]], [0, 0.2, 0.2], [1000, 1, 1]).save(file)  # one type that never comes, with very many slots
    saved = policy(rota.MSR([[0, 0, 1], [400, 1, 0]], [0.5, 0.5], "none", 0.1))
    assert main(["analyze", str(file), saved, "--json"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(importlib.import_module("rota.cli.analyze"), "_A_WHILE_S", 0.0)
    assert main(["analyze", str(file), saved, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "the process has 404 states: exact values will take about 0 s (--no-exact leaves them out)\n"
    assert all(math.isfinite(x) for x in json.loads(printed.out)["exact"])
    assert main(["analyze", str(file), saved, "--json", "--no-exact"]) == 0
    assert capsys.readouterr().err == ""


def edge_of_stability(tmp_path, policy, distance):
    """The paper's example, at a distance from the edge of stability of a policy."""
    system = rota.read_system(PAPER)
    file = tmp_path / "edge.toml"
    system.scaled(factor=rota.analyze(system, policy).largest_scaling * (1 - distance)).save(file)
    return str(file)


def test_an_exact_value_that_is_far_off_is_not_called_exact(policy, tmp_path, capsys):
    """So close to load 1 that no digit is left: words and bounds in place of the exact value, and null with the words in JSON."""
    slow = paper_rota("none", 0.001)
    file = edge_of_stability(tmp_path, slow, 1e-14)
    assert main(["analyze", file, policy(slow)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "exact" not in next(line for line in lines if "E[Q] at least" in line)
    assert any(line.startswith("There are no exact values: the mean of type 'type") for line in lines)
    assert main(["analyze", file, policy(slow), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["exact"] is None
    assert "estimated relative error" in fields["remarks"][0]


def test_few_digits_are_told(policy, tmp_path, capsys):
    """An exact value with few digits is one, and words and JSON say how few."""
    file = edge_of_stability(tmp_path, paper_rota("none", 0.06), 1e-10)
    assert main(["analyze", file, policy()]) == 0
    assert "The exact values have few digits" in capsys.readouterr().out
    assert main(["analyze", file, policy(), "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert len(fields["exact"]) == 3
    assert fields["remarks"][0].startswith("The exact values have few digits")


def test_bounds_that_prove_little_are_told(policy, tmp_path, capsys):
    """Without exact values, a prediction between bounds that are far apart is not left to stand alone."""
    file = tmp_path / "wide.toml"
    rota.System([64], [[1], [64]], [1.0, 0.001], [1.0, 0.1]).scaled(load=0.1).save(file)
    wide = policy(rota.MSR([[64, 0], [0, 1]], [0.5, 0.5], "none", 0.1))
    assert main(["analyze", str(file), wide, "--no-exact"]) == 0
    assert "so the prediction is not proved to be near the truth: simulate to know." in capsys.readouterr().out
