"""JSON that is kept as the text it is.

`json.loads` turns `1.10` into `1.1` and forgets the order of equal names. Payloads and metadata belong to the program that wrote
them, so they are cut out of answers as text, and put into requests as text. Everything else follows the annotations of
dataclasses.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin

from ._time import format_duration, format_instant, parse_instant


@dataclasses.dataclass(frozen=True, slots=True)
class Json:
    """Exact JSON text. As an argument it is sent byte for byte; in an answer it is what the service keeps."""

    text: str

    def loads(self, **options: Any) -> Any:
        """Parses it with `json.loads`; `loads(parse_float=Decimal)` loses no digit."""
        return json.loads(self.text, **options)


class Unset(Enum):
    """Tells an argument that was left out from one that is `None`."""

    UNSET = "unset"


UNSET = Unset.UNSET

# Skips values without converting their numbers, however long they are.
_skip = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
_BLANKS = " \t\r\n"


def members(text: str) -> dict[str, str]:
    """The members of a JSON object, each as its text."""
    found: dict[str, str] = {}
    at = _next(text, 0, "{")
    while text[at] != "}":
        name, at = _skip(text, at)
        start = _next(text, at, ":")
        _, end = _skip(text, start)
        found[name] = text[start:end]
        at = _next(text, end, ",}")
    return found


def elements(text: str) -> Iterator[str]:
    """The elements of a JSON array, each as its text."""
    at = _next(text, 0, "[")
    while text[at] != "]":
        _, end = _skip(text, at)
        yield text[at:end]
        at = _next(text, end, ",]")


def _next(text: str, at: int, marks: str) -> int:
    """Where the token after one of `marks` begins; the position of a closing mark itself."""
    at = _blanks(text, at)
    if at >= len(text) or text[at] not in marks:
        raise ValueError(f"expected {marks!r} at position {at}")
    return at if text[at] in "}]" else _blanks(text, at + 1)


def _blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def decode(hint: Any, text: str) -> Any:
    """The value of type `hint` that `text` says. Members that the type does not know are left out."""
    if get_origin(hint) in (Union, types.UnionType):
        return _decode_union([option for option in get_args(hint) if option is not type(None)], text)
    if hint is Json:
        return Json(text)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        known = _members_of(hint)
        given = ((known[name], value) for name, value in members(text).items() if name in known)
        return hint(**{attribute: decode(member, value) for (attribute, member), value in given})
    if get_origin(hint) is list:
        return [decode(get_args(hint)[0], element) for element in elements(text)]
    if get_origin(hint) in (dict, Mapping):
        return {name: decode(get_args(hint)[1], value) for name, value in members(text).items()}
    value = json.loads(text)
    return parse_instant(value) if hint is datetime else value


def _decode_union(options: Sequence[Any], text: str) -> Any:
    if text == "null":
        return None
    if Json in options:
        return Json(text)
    classes = [option for option in options if dataclasses.is_dataclass(option)]
    if len(classes) > 1:
        # Callbacks have a type; of other alternatives the one is meant whose required members are all there.
        given = members(text)
        kind = json.loads(given.get("type", "null"))
        return decode(next(option for option in classes if _is_meant(option, kind, given)), text)
    return decode(classes[0] if classes else options[0], text)


def _is_meant(option: Any, kind: object, given: Mapping[str, str]) -> bool:
    fields = dataclasses.fields(option)
    types_of = [field.default for field in fields if field.name == "type"]
    required = [field.name for field in fields if field.default is dataclasses.MISSING]
    return types_of == [kind] if types_of else all(name in given for name in required)


@cache
def _members_of(cls: Any) -> dict[str, tuple[str, Any]]:
    """The attribute and the type of each member; `from_` of a class is `from` in JSON."""
    hints = typing.get_type_hints(cls)
    return {field.name.rstrip("_"): (field.name, hints[field.name]) for field in dataclasses.fields(cls)}


def encode(value: Any) -> str:
    """The JSON text of a value. Of a dataclass, members that are `None` or left out are not written."""
    if isinstance(value, Json):
        return value.text
    if isinstance(value, timedelta):
        return json.dumps(format_duration(value))
    if isinstance(value, datetime):
        return json.dumps(format_instant(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return encode({name: part for name, part in given.items() if part is not None})
    if isinstance(value, Mapping):
        parts = (
            f"{json.dumps(str(name), ensure_ascii=False)}:{encode(part)}" for name, part in value.items() if part is not UNSET
        )
        return "{" + ",".join(parts) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(encode(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
