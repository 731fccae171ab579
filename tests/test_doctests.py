"""Every example in a docstring runs and prints what it says."""

import ast
import doctest
import importlib
import pkgutil

import pytest

import thrust_rl

MODULES = [info.name for info in pkgutil.walk_packages(thrust_rl.__path__, "thrust_rl.")]


def examples():
    """Docstrings with examples, read from the source: doctest's own search misses decorated functions."""
    parser = doctest.DocTestParser()
    for name in [*MODULES, "thrust_rl"]:
        path = importlib.util.find_spec(name).origin
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
                label = f"{name}.{getattr(node, 'name', '')}".rstrip(".")
                first_line = node.body[0].lineno - 1
                test = parser.get_doctest(ast.get_docstring(node), {}, label, path, first_line)
                if test.examples:
                    slow = name.startswith(("thrust_rl.training", "thrust_rl.experiment"))
                    yield pytest.param(name, test, id=label, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize(("module", "test"), list(examples()))
def test_example(module, test):
    test.globs = dict(vars(importlib.import_module(module)))
    report = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)


def test_the_modules_that_should_show_how_they_are_used_do():
    shown = {param.values[0] for param in examples()}
    wanted = {
        "maths.returns",
        "maths.losses",
        "envs.core",
        "envs.registry",
        "envs.observation",
        "rollout.normalize",
    }
    assert {f"thrust_rl.{name}" for name in wanted} <= shown
