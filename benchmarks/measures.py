"""Measures of the sources: size, names, imports between packages, and how often one job is done twice.

    python -m benchmarks.measures [--rev REVISION ...] [--json] [--list MEASURE]

Only the text of the sources is read (`ast`; nothing is imported), so any revision can be measured, by the same rules,
from a copy that ``git archive`` makes; a package that a revision lacks counts zero. The source is what is installed:
bayessel/, models/ (as bayessel.models) and diagnostics/ (as bayessel.diagnostics). The rules are the docstrings of the
functions in `RULES`; each returns the places it counted, which ``--list`` prints.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import subprocess
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: package -> its folder in the checkout
FOLDERS = {"bayessel": "bayessel", "bayessel.models": "models", "bayessel.diagnostics": "diagnostics"}
#: files longer than this are asked which second idea they hold
LONG = 400


@dataclass(frozen=True, eq=False)
class Module:
    """One source file: its dotted name, its path in the checkout and its text."""

    name: str
    path: str
    text: str
    is_package: bool

    @property
    def package(self) -> str:
        """The package that holds it; a package holds itself."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def lines(self) -> int:
        """All lines, docstrings, comments and blank ones included."""
        return len(self.text.splitlines())

    @property
    def public(self) -> bool:
        """Whether no part of its name begins with an underscore."""
        return not any(part.startswith("_") for part in self.name.split("."))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the parsed text."""
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def imports(self) -> list[tuple[int, str, str, str]]:
        """(line, module, name, name it has here) of everything imported anywhere; `import a.b` has no name."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name, "", alias.asname or alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                start = node.module or ""
                found += [(node.lineno, start, alias.name, alias.asname or alias.name) for alias in node.names]
        return found


@dataclass(frozen=True, eq=False)
class Sources:
    """All modules of a checkout, by their dotted names."""

    modules: Mapping[str, Module] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Sources:
        """Read the installed packages of the checkout at `root`; one that is not there has no modules."""
        found = {}
        for package, folder in FOLDERS.items():
            for path in sorted((root / folder).rglob("*.py")):
                parts = path.relative_to(root / folder).with_suffix("").parts
                is_package = parts[-1] == "__init__"
                name = ".".join((package, *(parts[:-1] if is_package else parts)))
                found[name] = Module(name, path.relative_to(root).as_posix(), path.read_text(), is_package)
        return cls(found)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())

    @cached_property
    def classes(self) -> dict[tuple[str, str], ast.ClassDef]:
        """(module, class) -> its definition, classes inside functions and classes included."""
        return {(m.name, node.name): node for m in self for node in m.nodes if isinstance(node, ast.ClassDef)}

    def resolve(self, module: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> tuple[str, str] | None:
        """Return where a class that a module calls `name` is defined, through re-exports; None where it is not ours."""
        if (module, name) in self.classes:
            return module, name
        if module not in self.modules or (module, name) in seen:
            return None
        for _, source, imported, here in self.modules[module].imports:
            if here == name and imported:
                return self.resolve(source, imported, seen | {(module, name)})
        return None

    def bases(self, where: tuple[str, str]) -> list[tuple[str, str]]:
        """Bases of a class that are ours."""
        found = []
        for base in self.classes[where].bases:
            base = base.value if isinstance(base, ast.Subscript) else base  # Generic[...] and its like
            if isinstance(base, ast.Name):
                found.append(self.resolve(where[0], base.id))
            elif isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
                aliases = {here: f"{source}.{name}".rstrip(".") for _, source, name, here in self._imports(where[0])}
                found.append(self.resolve(aliases.get(base.value.id, ""), base.attr))
        return [base for base in found if base]

    def _imports(self, module: str) -> list[tuple[int, str, str, str]]:
        return self.modules[module].imports

    def ancestry(self, where: tuple[str, str]) -> set[tuple[str, str]]:
        """The class and all its ancestors that are ours."""
        return {where}.union(*(self.ancestry(base) for base in self.bases(where)))

    def chain(self, where: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        """The longest path from the class to an ancestor of ours, the class first."""
        return (where, *max((self.chain(base) for base in self.bases(where)), key=len, default=()))

    @cached_property
    def estimators(self) -> list[tuple[str, str]]:
        """Classes in `__all__` of bayessel.estimators and bayessel.baselines."""
        found = [
            self.resolve(package, name)
            for package in ("bayessel.estimators", "bayessel.baselines")
            if package in self.modules
            for name in exported(self.modules[package])
        ]
        return sorted({where for where in found if where})


def exported(module: Module) -> list[str]:
    """Strings of a module's `__all__`, written as a list or tuple of constants."""
    for node in module.nodes:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value = node.value  # type: ignore[attr-defined]
            return [e.value for e in ast.walk(value) if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    return []


def called(node: ast.AST) -> str:
    """Last name of what is called, "" for anything but a call."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def room(module: Module) -> str:
    """Folder (of the first two levels) a module lies in; the top level of bayessel/ is a room of its own."""
    return "/".join(module.path.split("/")[:-1][:2])


def _at(module: Module, node: ast.AST, what: str = "") -> str:
    return f"{module.path}:{getattr(node, 'lineno', 0)}" + (f" {what}" if what else "")


def source_lines(sources: Sources) -> list[str]:
    """Lines of the source, every line counted."""
    return [f"{m.path}:{n}" for m in sources for n in range(1, m.lines + 1)]


def files(sources: Sources) -> list[str]:
    """Source files."""
    return [m.path for m in sources]


def long_files(sources: Sources) -> list[str]:
    """Files of more than 400 lines."""
    return [f"{m.path} {m.lines}" for m in sources if m.lines > LONG]


def public_names(sources: Sources) -> list[str]:
    """Different names in `__all__` of all public modules; names of modules and dunders are left out."""
    found = {
        name
        for m in sources
        if m.public
        for name in exported(m)
        if f"{m.name}.{name}" not in sources.modules and not name.startswith("__")
    }
    return sorted(found)


def repeated_class_names(sources: Sources) -> list[str]:
    """Class names that are defined more than once."""
    places = defaultdict(list)
    for module, name in sources.classes:
        places[name].append(module)
    return sorted(f"{name}: {', '.join(sorted(where))}" for name, where in places.items() if len(where) > 1)


def private_imports(sources: Sources) -> list[str]:
    """Imports of a private module or name of another package.

    A name with an underscore belongs to the package that holds it: that package and the packages inside it may import
    it, everything else may not. The modules directly in bayessel/ belong to all. The table of names in
    bayessel/__init__.py points at private modules and is not counted.
    """
    found = []
    for m in (m for m in sources if m.name != "bayessel"):
        for line, source, name, _ in m.imports:
            parts = [*source.split("."), *([name] if name else [])]
            hidden = [k for k, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
            if parts[0] != "bayessel" or not hidden:
                continue
            owner = ".".join(parts[: hidden[0]])
            if owner not in sources.modules or not sources.modules[owner].is_package:  # a private name of a module
                owner = owner.rpartition(".")[0]
            if not (m.package + ".").startswith(owner + "."):
                found.append(f"{m.path}:{line} {'.'.join(parts)}")
    return found


def worker_systems(sources: Sources) -> list[str]:
    """Modules that start processes or threads of their own: they call Process, Parallel, an executor or Popen."""
    starters = {"Process", "Parallel", "ProcessPoolExecutor", "ThreadPoolExecutor", "Pool", "Popen", "Thread"}
    return [m.path for m in sources if any(called(node) in starters for node in m.nodes)]


def progress_bars(sources: Sources) -> list[str]:
    """Modules that import `rich.progress` (or tqdm)."""
    return [m.path for m in sources if any(s.startswith(("rich.progress", "tqdm")) for _, s, _, _ in m.imports)]


def seed_checks(sources: Sources) -> list[str]:
    """Functions that decide what a seed may be.

    They take a seed (by that name, or rng, random_state, random_seed) and ask by `isinstance` for NumPy's Generator or
    RandomState.
    """
    seeds = {"seed", "rng", "random_state", "random_seed"}
    found = []
    for m in sources:
        for node in m.nodes:
            if isinstance(node, ast.FunctionDef) and seeds & {argument.arg for argument in _arguments(node)}:
                asked = [ast.unparse(inner) for inner in ast.walk(node) if called(inner) == "isinstance"]
                if any("Generator" in text or "RandomState" in text for text in asked):
                    found.append(_at(m, node, node.name))
    return found


def journals(sources: Sources) -> list[str]:
    """Modules that write safely by themselves: they call `fsync`."""
    return [m.path for m in sources if any(called(node) == "fsync" for node in m.nodes)]


def interrupts(sources: Sources) -> list[str]:
    """Handlers of KeyboardInterrupt."""
    return [
        _at(m, node)
        for m in sources
        for node in m.nodes
        if isinstance(node, ast.ExceptHandler) and node.type and "KeyboardInterrupt" in ast.unparse(node.type)
    ]


def guesses_of_readers(sources: Sources) -> list[str]:
    """Calls of `hasattr` in what reads fits: .diagnostics (but not delve and calibration), .criteria and .widths."""
    others = ("bayessel.diagnostics.delve", "bayessel.diagnostics.calibration")  # these read methods and models
    readers = ("bayessel.diagnostics.", "bayessel.criteria.", "bayessel.widths.")
    return [
        _at(m, node)
        for m in sources
        if (m.name + ".").startswith(readers) and not m.name.startswith(others)
        for node in m.nodes
        if called(node) == "hasattr"
    ]


def _registry(module: Module) -> bool:
    return module.name == "bayessel.diagnostics._criteria" or (module.name + ".").startswith("bayessel.criteria.")


def criteria(sources: Sources) -> set[str]:
    """Names in the registry: first argument or `name=` of every `Criterion(...)`, and `name = "..."` of classes."""
    found = set()
    for m in filter(_registry, sources):
        for node in m.nodes:
            values: list[ast.expr] = []
            if called(node) == "Criterion" and isinstance(node, ast.Call):
                values = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]
            elif isinstance(node, ast.ClassDef):
                values = [
                    line.value
                    for line in node.body
                    if isinstance(line, ast.Assign) and any(getattr(t, "id", "") == "name" for t in line.targets)
                ]
            found |= {v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)}
    return found


def criterion_names(sources: Sources) -> list[str]:
    """Strings (not in docstrings) that are a criterion's name, outside the registry; plain words are not counted."""
    names = criteria(sources) - {"evidence", "loo"}  # also words for other things
    return [
        _at(m, node, node.value)
        for m in sources
        if not _registry(m)
        for node in m.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]


def loose_signatures(sources: Sources) -> list[str]:
    """Parameters and results of exported functions, and of public methods of exported classes, that say `Any`."""
    names = set(public_names(sources))
    found = []
    for module in sources:
        for node in ast.iter_child_nodes(ast.parse(module.text)):
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            if getattr(node, "name", None) not in names:
                continue
            for function in inside:
                if isinstance(function, ast.FunctionDef) and (
                    function.name == "__init__" or not function.name.startswith("_")
                ):
                    parts = [(one.arg, one.annotation) for one in _arguments(function)] + [("->", function.returns)]
                    found += [
                        _at(module, function, f"{function.name} {name}")
                        for name, said in parts
                        if said and any(isinstance(n, ast.Name) and n.id == "Any" for n in ast.walk(said))
                    ]
    return found


def longest_chain(sources: Sources) -> list[str]:
    """The longest line of inheritance, from an estimator to its furthest ancestor of ours, both counted."""
    chains = [sources.chain(where) for where in sources.estimators]
    return [".".join(where) for where in max(chains, key=len, default=())]


def largest_ancestry(sources: Sources) -> list[str]:
    """The most classes of ours that one estimator is made of, itself and mixins counted."""
    return sorted(".".join(w) for w in max(map(sources.ancestry, sources.estimators), key=len, default=set()))


#: measure -> rule
RULES: dict[str, Callable[[Sources], list[str]]] = {
    "source lines": source_lines,
    "source files": files,
    "files over 400 lines": long_files,
    "public names": public_names,
    "class names used twice": repeated_class_names,
    "private imports across packages": private_imports,
    "worker systems": worker_systems,
    "progress bars": progress_bars,
    "seed checks": seed_checks,
    "journals": journals,
    "handlers of KeyboardInterrupt": interrupts,
    "hasattr in readers of fits": guesses_of_readers,
    "criterion names outside the registry": criterion_names,
    "Any in public signatures": loose_signatures,
    "longest inheritance of an estimator": longest_chain,
    "most classes in an estimator's ancestry": largest_ancestry,
}


def measure(root: Path) -> dict[str, int | dict[str, int]]:
    """Every measure of the checkout at `root`, and the lines of each room."""
    sources = Sources.of(root)
    rooms: Counter[str] = Counter()
    for module in sources:
        rooms[room(module)] += module.lines
    counts: dict[str, int | dict[str, int]] = {name: len(rule(sources)) for name, rule in RULES.items()}
    tests = sum(len(path.read_text().splitlines()) for path in sorted((root / "tests").rglob("*.py")))
    return {**counts, "test lines": tests, "lines per room": dict(sorted(rooms.items()))}


def checked_out(revision: str, folder: Path) -> Path:
    """Unpack a revision of this repository into a folder."""
    done = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def table(columns: Mapping[str, Mapping[str, int | dict[str, int]]]) -> str:
    """The measures side by side, one column per revision."""
    rooms = sorted({name for column in columns.values() for name in column["lines per room"]})  # type: ignore[union-attr]
    rows = [["", *columns]]
    rows += [[name, *(str(c[name]) for c in columns.values())] for name in (*RULES, "test lines")]
    rows += [[f"  {name}", *(str(c["lines per room"].get(name, 0)) for c in columns.values())] for name in rooms]  # type: ignore[union-attr]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))]) for r in rows
    ]
    lines.insert(len(RULES) + 2, "lines per room")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Print the measures of the checkout, and of revisions beside it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measures", description="Measures of the sources.")
    parser.add_argument("--rev", nargs="+", default=[], metavar="REVISION", help="revisions to measure first")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", choices=list(RULES), metavar="MEASURE", help="print the places one measure counts")
    args = parser.parse_args(argv)
    if args.list:
        print(*RULES[args.list](Sources.of(ROOT)), sep="\n")
        return 0
    columns = {}
    for revision in args.rev:
        with tempfile.TemporaryDirectory() as folder:
            columns[revision] = measure(checked_out(revision, Path(folder)))
    columns["now"] = measure(ROOT)
    print(json.dumps(columns, indent=1) if args.json else table(columns))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
