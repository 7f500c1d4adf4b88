"""`python -m benchmarks [NAME …]`: runs the benchmarks with these names, or all of them; `NAME --option value` runs one with options."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main(names: list[str]) -> int:
    """Runs the named benchmarks one after the other. Options, if any, are for the one that is named."""
    first = next((at for at, word in enumerate(names) if word.startswith("-")), len(names))
    names, options = names[:first], names[first:]
    known = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_"))
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)} (there are: {', '.join(known)})", file=sys.stderr)
        return 2
    for name in names or known:
        print(f"== {name}", flush=True)
        module = importlib.import_module(f"benchmarks.{name}")
        module.run(options) if options else module.run()
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
