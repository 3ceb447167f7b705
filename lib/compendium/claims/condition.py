"""Conditions of a rule: the small language in which evidence decides, such as `high < 0 and seeds
>= 3`.

A condition is read as Python, and only these parts of Python are allowed: names of evidence,
numbers, `True`, `False`, comparisons (also chained), `and`, `or`, `not`, `+ - * / **`, `abs`,
`min`, `max`. Nothing is executed: the tree is walked here.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}


@dataclass(frozen=True)
class Condition:
    """A parsed condition: `text` as it was written, `names` of the evidence that it reads."""

    text: str
    tree: ast.expr
    names: frozenset[str]

    def __call__(self, evidence: Mapping[str, Any]) -> bool:
        """Whether the condition is true of the evidence.

        ValueError when a name is missing, a text is compared, or the condition is no yes-or-no
        question.
        """
        value = _evaluate(self.tree, evidence, self.text)
        if not isinstance(value, bool):
            raise ValueError(f"the condition {self.text!r} gives {value!r}, neither True nor False")
        return value


def parse(text: str) -> Condition:
    """The condition, or a `ValueError` that says which part of it is not allowed."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"the condition {text!r} does not parse ({getattr(error, 'msg', error)})"
        ) from None
    called = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) as function, keywords=[]) if name in _FUNCTIONS:
                called.add(function)
            case ast.Constant(value=bool() | int() | float()):
                pass
            case ast.Compare(ops=ops) if all(type(op) in _COMPARE for op in ops):
                pass
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                pass
            case ast.UnaryOp(op=ast.Not() | ast.USub()) | ast.BoolOp() | ast.Name():
                pass
            case ast.boolop() | ast.operator() | ast.unaryop() | ast.cmpop() | ast.expr_context():
                pass  # judged with the node that holds them
            case _:
                raise ValueError(
                    f"the condition {text!r} holds {ast.unparse(node)!r}, which no condition may"
                )
    named = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in called
    }
    return Condition(text.strip(), tree, frozenset(named))


def _evaluate(node: ast.expr, evidence: Mapping[str, Any], text: str) -> Any:
    def number(part: ast.expr) -> Any:
        value = _evaluate(part, evidence, text)
        if not isinstance(value, bool | int | float):
            raise ValueError(
                f"the condition {text!r} calculates with {ast.unparse(part)} = {value!r}, "
                f"which is not a number"
            )
        return value

    def truth(part: ast.expr) -> bool:
        value = _evaluate(part, evidence, text)
        if not isinstance(value, bool):
            raise ValueError(
                f"the condition {text!r} asks whether {ast.unparse(part)} = {value!r} is "
                f"true, a number or text"
            )
        return value

    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name not in evidence:
                raise ValueError(f"the condition {text!r} needs {name}, which was not passed")
            return evidence[name]
        case ast.BoolOp(op=ast.And(), values=values):
            return all(truth(value) for value in values)
        case ast.BoolOp(values=values):
            return any(truth(value) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not truth(operand)
        case ast.UnaryOp(operand=operand):
            return -number(operand)
        case ast.BinOp(left=left, op=op, right=right):
            try:
                return _ARITHMETIC[type(op)](number(left), number(right))
            except ArithmeticError as error:
                raise ValueError(f"the condition {text!r} cannot be calculated: {error}") from None
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [number(part) for part in (left, *comparators)]
            return all(
                _COMPARE[type(op)](a, b) for op, a, b in zip(ops, values, values[1:], strict=False)
            )
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _FUNCTIONS[name](*map(number, arguments))
    raise AssertionError(f"parse let {ast.unparse(node)} through")
