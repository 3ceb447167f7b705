"""Conditions of a rule: the small language in which evidence decides, such as `high < 0 and seeds
>= 3`.

A condition is an expression of Python of which only these parts are allowed: names of evidence,
numbers, `True`, `False`, comparisons (also chained), `and`, `or`, `not`, `+ - * / **`, `abs`,
`min`, `max`. What is asked whether it is true must be a truth value, everything else a number.
A wrong rule is refused when it is read; the package simpleeval would accept `'x' < 'y'`.
"""

import ast
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType
from typing import Any

_FUNCTIONS = {"abs": abs, "min": min, "max": max}
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)


@dataclass(frozen=True)
class Condition:
    """A condition, the `names` of the evidence that it reads, and those that must be `truths`."""

    text: str
    code: CodeType
    names: frozenset[str]
    truths: frozenset[str]

    def __call__(self, evidence: Mapping[str, Any]) -> bool:
        """Whether the condition is true of the evidence; ValueError when a name is missing, or is
        no truth value or number where the condition wants one.
        """
        for name in sorted(self.names):
            if name not in evidence:
                raise ValueError(f"the condition {self.text!r} needs {name}, which was not passed")
            value = evidence[name]
            if not isinstance(value, bool | int | float):
                told = f"calculates with {name} = {value!r}, which is not a number"
                raise ValueError(f"the condition {self.text!r} {told}")
            if name in self.truths and not isinstance(value, bool):
                told = f"asks whether {name} = {value!r} is true, a number"
                raise ValueError(f"the condition {self.text!r} {told}")
        named = {name: evidence[name] for name in self.names}
        try:
            return eval(self.code, {"__builtins__": {}}, {**_FUNCTIONS, **named})
        except ArithmeticError as error:
            raise ValueError(f"the condition {self.text!r} cannot be calculated: {error}") from None

    def failing(self, evidence: Mapping[str, Any]) -> list[str]:
        """What is false of the evidence, each part of an `and` by itself, with the values that it
        reads; nothing where the condition is true.
        """
        if self(evidence):
            return []
        match ast.parse(self.text, mode="eval").body:
            case ast.BoolOp(op=ast.And(), values=values):
                parts = [parse(ast.unparse(value)) for value in values]
            case _:
                parts = [self]
        told = []
        for part in parts:
            with suppress(ValueError):  # a part before it says when it can be calculated
                if not part(evidence):
                    told.append(f"{part.text}, here {part._values(evidence)}")
        return told

    def _values(self, evidence: Mapping[str, Any]) -> str:
        """The evidence that the condition reads, by name where it is more than one."""
        found = {name: _short(evidence[name]) for name in sorted(self.names)}
        if len(found) == 1:
            return next(iter(found.values()))
        return ", ".join(f"{name} = {value}" for name, value in found.items())


def _short(value: bool | float) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def parse(text: str) -> Condition:
    """The condition, or a `ValueError` that says which part of it is not allowed."""
    try:
        whole = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        said = getattr(error, "msg", error)
        raise ValueError(f"the condition {text!r} does not parse ({said})") from None
    called, asked = list[ast.AST](), [whole.body]
    for node in ast.walk(whole.body):
        match node:
            case ast.Call(func=ast.Name(id=name) as function, keywords=[]) if name in _FUNCTIONS:
                called.append(function)
            case ast.BoolOp(values=values):
                asked += values
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                asked.append(operand)
            case ast.Compare(ops=ops) if all(isinstance(op, _ORDERS) for op in ops):
                pass
            case ast.BinOp(op=op) if isinstance(op, _ARITHMETIC):
                pass
            case ast.Constant(value=bool() | int() | float()) | ast.UnaryOp(op=ast.USub()):
                pass
            case ast.Name() | ast.expr_context():
                pass
            case ast.boolop() | ast.operator() | ast.unaryop() | ast.cmpop():
                pass  # judged with the node that holds it
            case _:
                part = f"holds {ast.unparse(node)!r}, which no condition may"
                raise ValueError(f"the condition {text!r} {part}")
    for node in asked:
        match node:
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Name():
                pass
            case _ if not isinstance(getattr(node, "value", None), bool):
                part = f"asks whether {ast.unparse(node)!r} is true, neither True nor False"
                raise ValueError(f"the condition {text!r} {part}")
    named = [node for node in ast.walk(whole) if isinstance(node, ast.Name) and node not in called]
    return Condition(
        text.strip(),
        compile(whole, "<condition>", "eval"),
        frozenset(node.id for node in named),
        frozenset(node.id for node in asked if isinstance(node, ast.Name)),
    )
