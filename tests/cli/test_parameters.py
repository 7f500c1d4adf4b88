"""The options of all verbs: each is described, and one that verbs share has the same words everywhere."""

from collections import defaultdict

import pytest

from cli_app import is_option, verbs

# Of these the verb says itself what they are: another thing goes by the same name.
OWN_WORDS = {
    ("top", "--json"),  # of a view that goes on, one
    ("serve", "--seed"),  # of the policy, not of a simulation
    ("slurm run", "--seed"),  # the same
    ("simulate", "--workers"),  # goes with --replications only
    ("trace drift", "--loops"),  # of a window, not of a workload
}
SHARED = ["--at", "--capacity", "--force", "--json", "--loops", "--seed", "--sizes", "--warmup-loops", "--workers", "--workload"]


@pytest.mark.parametrize(("verb", "arguments"), list(verbs()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_argument_is_described(verb, arguments):
    """The help of a verb has a text for each argument, whether it comes from the verb or from what verbs share."""
    assert [argument.name for argument in arguments if not argument.parameter.help] == []


@pytest.mark.parametrize("name", SHARED)
def test_shared_options_have_the_same_words(name):
    """An option that several verbs have is described in one way."""
    words = defaultdict(list)
    for verb, arguments in verbs():
        for argument in arguments:
            if argument.name == name and (verb, name) not in OWN_WORDS and not verb.startswith("token "):
                words[argument.parameter.help].append(verb)
    assert len(words) == 1, dict(words)
    assert len(next(iter(words.values()))) > 1


def test_what_writes_a_file_can_be_forced():
    """--output goes with -o and --force in every verb that has it."""
    for verb, arguments in verbs():
        names = {name for argument in arguments if is_option(argument) for name in argument.names}
        if "--output" in names:
            assert {"-o", "--force"} <= names, verb
