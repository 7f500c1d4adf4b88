"""The best policy there is, as a yardstick: a Markov decision process solved for few types; and the exact mean of policies by counts."""

from rota.optimal.answer import OptimalProgress
from rota.optimal.compiling import compile_search
from rota.optimal.evaluate import Evaluation, evaluate
from rota.optimal.optimal_policy import Optimal, optimal_policy

__all__ = ["Evaluation", "Optimal", "OptimalProgress", "compile_search", "evaluate", "optimal_policy"]
