"""`rota design`."""

import json

import pytest

import rota
from rota.cli import main
from systems import EXAMPLES

PAPER, WEB, VM = (str(EXAMPLES / f"{name}.toml") for name in ("paper", "web", "vm"))
BALANCED = ["--objective", "load"]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A server for which one schedule is enough, so that the default design takes a moment."""
    file = tmp_path_factory.mktemp("large") / "large.toml"
    rota.System([1024], [[1], [8]], [384, 57.6], [1, 1], names=["small", "large"], preemption="none").save(file)
    return str(file)


def test_close_is_the_default(large, capsys):
    """Without --objective the rota is a close one; words say what it is, and what the paper's design would give."""
    assert main(["design", large]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Preemption none: 1 state, 100.0% of the time working"
    assert "        always  440 × small + 73 × large" in lines
    assert lines[-2] == "Run these counts always: nothing ever switches."
    system = rota.read_system(large)
    balanced = rota.analyze(system, rota.design_policy(system, objective="load"))
    lower = lines[-1].removeprefix("The paper's design (balanced loads) has a mean response time of at least ").removesuffix(".")
    assert 1 < float(lower) <= balanced.little(balanced.prediction)


def test_schedules_with_much_in_common(tmp_path, capsys):
    """What the schedules of a rota have in common is printed once, and then what each has beside it."""
    system, policy = tmp_path / "system.toml", tmp_path / "policy.json"
    rota.System([64], [[1], [8]], [24, 3.6], [1, 1], names=["small", "large"], preemption="none").save(system)
    rota.save_policy(rota.MSR([[24, 5], [32, 4]], [0.25, 0.75], "none", 1.0, names=["small", "large"]), policy)
    assert main(["analyze", str(system), str(policy)]) == 0
    assert capsys.readouterr().out.splitlines()[4:7] == [
        "        always  24 × small + 4 × large",
        "        25.00%  + 1 × large",
        "        75.00%  + 8 × small",
    ]


def test_tables(capsys):
    """The tables show the rota, the queues and E[T], and words say how good the switching rate is."""
    assert main(["design", PAPER, *BALANCED]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0] == "Preemption none, switching rate 0.0526969: 9 states, 89.2% of the time working"
    assert "        50.00%  2 × type3" in lines
    assert "        50.00%  1 × type1 + 4 × type2" in lines
    assert any(line.split() == ["type1", "0.9582", "125.95", "137.55", "125.95", "126.324", "280.719"] for line in lines)
    assert any(line.startswith("Mean response time 173.762 (relative error about ") for line in lines)
    assert "Arrivals can grow by a factor of up to 1.044 under this policy." in lines
    assert lines[-1] == (
        "The switching rate is the best one. The prediction would choose 0.0527008; the bounds prove that to be within 14.7% of the best."
    )


def test_json_is_the_design_of_python(large, capsys):
    """With --json one object has the policy as in its file, the fields of its analysis, and what the paper's design would give."""
    assert main(["design", large, "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    fields = json.loads(printed.out)
    system = rota.read_system(large)
    policy = rota.design_policy(system)
    assert fields["objective"] == "close"
    assert fields["balanced"]["exact"] is False
    assert fields["balanced"]["mean_response_time"] > fields["mean_response_time"]
    assert rota.policy.policy_from_json(json.dumps(fields["policy"])) == policy
    assert fields["mean_response_time"] == rota.analyze(system, policy).mean_response_time


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--preemption", "full"],
        ["--preemption", "setup", "--setup-rate", "10"],
        ["--route", "random", "--seed", "3", "--opening", "early"],
        ["--route", "search", "--by", "prediction"],
        ["--switching-rate", "0.05"],
    ],
    ids=" ".join,
)
def test_the_file_is_the_policy(options, tmp_path, capsys):
    """-o writes the policy that Python designs with the same options, and says so on standard error."""
    file = tmp_path / "policy.json"
    assert main(["design", PAPER, *BALANCED, *options, "-o", str(file), "--json"]) == 0
    assert rota.read_policy(file) == rota.policy.policy_from_json(json.dumps(json.loads(capsys.readouterr().out)["policy"]))
    keywords = {key.removeprefix("--").replace("-", "_"): value for key, value in zip(options[::2], options[1::2], strict=True)}
    numbers = {key: float(keywords[key]) for key in ("setup_rate", "switching_rate") if key in keywords}
    seed = {"seed": int(keywords["seed"])} if "seed" in keywords else {}
    assert rota.read_policy(file) == rota.design_policy(rota.read_system(PAPER), objective="load", **{**keywords, **numbers, **seed})


def test_what_was_written(tmp_path, capsys):
    """Beside the tables a remark names the file, and `rota analyze` reads it and prints the same tables."""
    file = tmp_path / "policy.json"
    assert main(["design", PAPER, *BALANCED, "-o", str(file)]) == 0
    designed = capsys.readouterr()
    assert designed.err == f"policy written to {file}\n"
    assert main(["analyze", PAPER, str(file)]) == 0
    assert designed.out.startswith(capsys.readouterr().out)


def test_whether_to_preempt(capsys):
    """With setups the last line says how fast they must be."""
    assert main(["design", PAPER, *BALANCED, "--preemption", "setup", "--setup-rate", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Preemption setup, switching rate 0.234923, setup rate 10: 9 states, 95.7% of the time working"
    assert lines[-1] == "Preempting pays if the setup rate is above 2.307 (setups shorter than 0.4334), not otherwise."


def test_where_preempting_never_pays(tmp_path, capsys):
    """Where even free preemption is worse than none, the last line says so."""
    file = tmp_path / "idle.toml"
    rota.System([3], [[1], [3]], [0.012, 0.071], [0.9, 0.1], preemption="setup", setup_time=0.5).save(file)
    assert main(["design", str(file), *BALANCED]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Preempting does not pay, however fast the setups."


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("prediction", "The switching rate, chosen by the prediction, is within 14.7% of the best one: the bounds prove it."),
        ("upper", "The switching rate, chosen by the upper bound, is within 14.4% of the best one: the bounds prove it."),
        ("lower", "The switching rate, chosen by the lower bound, is within 14.7% of the best one: the bounds prove it."),
    ],
)
def test_by_another_yardstick(by, words, capsys):
    """The words name the yardstick and the guarantee."""
    assert main(["design", PAPER, *BALANCED, "--by", by]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == words


def test_a_guarantee_that_proves_nothing(tmp_path, capsys):
    """Where the bounds are far apart, the words do not call their quotient a proof."""
    file = tmp_path / "wide.toml"
    rota.System([64], [[1], [64]], [1.0, 0.001], [1.0, 0.1], preemption="none").scaled(load=0.1).save(file)
    for by in ("prediction", "exact"):
        assert main(["design", str(file), *BALANCED, "--by", by]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert "prove nothing useful about" in last
        assert "%" not in last


def test_a_system_with_preemption(capsys):
    """A pMSR needs no words about its rate; the preemption model is that of the file."""
    assert main(["design", VM, *BALANCED]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Preemption full, switching rate 32: 4 states, 100.0% of the time working"
    assert lines[-1] == "Arrivals can grow by a factor of up to 1.527 under this policy."


def test_lognormal_sizes_are_taken_as_exponential(capsys):
    """A file with lognormal and Erlang sizes is designed for by its means; the setup rate comes from its setup time."""
    assert main(["design", WEB, "--time-limit", "1", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["policy"]["setup_rate"] == 2.0
    assert fields["stable"] is True
    assert len(fields["exact"]) == 3


def test_tuned_on_the_response_time(capsys):
    """--objective response-time gives a far better policy than the balanced one."""
    assert main(["design", PAPER, "--objective", "response-time", "--time-limit", "10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_response_time"] < 0.5 * 173.762


def test_a_limit_for_a_type(capsys):
    """--max-response-time.TYPE holds in the result; one that nobody can keep ends with 1 and says why."""
    tuned = ["design", PAPER, "--preemption", "full", "--objective", "response-time", "--time-limit", "4", "--json"]
    assert main([*tuned, "--max-response-time.type3", "8"]) == 0
    assert json.loads(capsys.readouterr().out)["response_time"][2] <= 8
    assert main([*tuned, "--max-response-time.type1", "0.5"]) == 1
    assert "even with the server to itself" in capsys.readouterr().err


def test_too_much_work(tmp_path, capsys):
    """A load of 1 or more ends with 1 and the way out, and writes no file."""
    file, output = tmp_path / "busy.toml", tmp_path / "policy.json"
    rota.read_system(PAPER).scaled(load=1.25).save(file)
    assert main(["design", str(file), "-o", str(output)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "rota: the system load 1.25 is not below 1: scale arrivals by less than 0.8, or see `rota capacity`\n"
    assert not output.exists()


def test_too_fast_a_clock(capsys):
    """An unstable switching rate ends with 1."""
    assert main(["design", PAPER, *BALANCED, "--switching-rate", "5"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("rota: load 1.869 of type 'type1' is not below 1: scale arrivals by less than 0.5351")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--preemption", "setup"], "setup_rate: is missing"),
        (["--preemption", "some"], "preemption"),
        (["--switching-rate", "-1"], "switching_rate: must be positive and finite (got -1.0)"),
        (["--switching-rate", "fast"], "switching-rate"),
        (["--objective", "speed"], "objective"),
        (["--by", "luck"], "by"),
        (["--route", "scenic"], "route"),
        (["more.toml"], "more.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_use(arguments, complaint, capsys):
    """Wrong options end with 2, say so on standard error, and print no data."""
    assert main(["design", PAPER, *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert complaint in printed.err
    assert "Traceback" not in printed.err


def test_a_place_that_cannot_be_written(tmp_path, capsys):
    """A file that cannot be written ends with 2 before the work begins."""
    assert main(["design", PAPER, "-o", str(tmp_path / "none" / "policy.json")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--output: is in a directory that does not exist" in printed.err
