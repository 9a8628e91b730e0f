"""Schema files: YAML or JSON text to plain values and back, with the comments a person needs."""

import json
import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import yaml

from dpcipher.drawing.curator_only import STAMP_KEY, UNSIGNED
from dpcipher.errors import SchemaError
from dpcipher.files import check_output, write_text
from dpcipher.files.codec import is_number
from dpcipher.files.json import MAX_DIGITS, check_plain, read_json

MAX_BYTES = 2**26
ENDINGS = (".yaml", ".yml", ".json")

_DRAFT_HEAD = """\
# CURATOR ONLY. DRAFT, DRAWN FROM PRIVATE DATA. NOT PRIVATE: keep this file as confidential as the table itself.
#
# The levels and ranges below were read off the rows. Before a release, a person must make sure that each of them is public
# knowledge: replace ranges by what anyone could say without looking (age 0..120, not 17..93), remove levels that only a few
# people could have, and say with `other` where values go that are not listed.
# When everything below could be published, sign it:
#
#     dpcipher schema sign THIS-FILE --name "Your Name"
#
# which adds your name, the date and a hash of the schema. Any later edit voids the signature.
"""
_IMPORT_HEAD = """\
# CURATOR ONLY. IMPORTED FROM A DATA DICTIONARY, NOT SIGNED YET. A dictionary may have been computed from the rows: its largest income can be somebody's income.
#
# The notes say where each fact came from. Before a release, a person must make sure that each level, range and label below is public knowledge; replace
# a range that is not by what anyone could say without looking, or by `auto`, which `measure` finds privately. Then sign it:
#
#     dpcipher schema sign THIS-FILE --name "Your Name"
#
# which adds your name, the date and a hash of the schema. Any later edit voids the signature.
"""
_HEAD_KEYS = ("version", "title", "description", "person", "drawn_from_data", "imported_from", "notes")
_ADVICE = {
    "categorical": "check: is every level public? drop rare ones and send them to `other`",
    "ordinal": "check: is every level public, and in the right order?",
    "integer": "check: set min and max to what is publicly possible",
    "number": "check: set min, max and bins to what is publicly possible",
    "date": "check: set min and max to what is publicly possible",
    "time": "check: set min and max to what is publicly possible",
    "boolean": "check: is this a yes/no column?",
}


def read(path: str | PathLike[str]) -> dict[str, object]:
    """The plain values in a schema file."""
    text = _read_text(Path(path))
    form = "JSON" if Path(path).suffix == ".json" else "YAML"
    try:
        if form == "JSON":
            plain = read_json(text)
        else:
            plain = yaml.load(text, Loader=_Loader)
            check_plain(plain)
    except (ValueError, RecursionError, yaml.YAMLError) as wrong:
        raise SchemaError(f"is not readable as {form} ({_where(wrong)}); correct the file") from None
    if not isinstance(plain, dict):
        raise SchemaError("a schema must be a mapping with the key columns")
    return plain


def write(
    path: str | PathLike[str], plain: Mapping[str, object], *, awaiting: bool, force: bool = False
) -> None:
    """Write plain values as a schema file; `awaiting` adds what a person must check before signing, and keeps it from others."""
    check_output(path, endings=ENDINGS, force=force)
    if Path(path).suffix == ".json":
        text = json.dumps(({STAMP_KEY: UNSIGNED} if awaiting else {}) | dict(plain), indent=2) + "\n"
    else:
        text = to_yaml(plain, awaiting=awaiting)
    try:
        write_text(Path(path), text, mode=0o600 if awaiting else 0o666, force=force)
    except OSError as wrong:
        raise SchemaError(f"{path}: cannot be written ({wrong.strerror}); choose another place") from None


def to_yaml(plain: Mapping[str, Any], *, awaiting: bool) -> str:
    """A schema as YAML, one line for each column."""
    head = {key: plain[key] for key in _HEAD_KEYS if key in plain}
    rest = {key: value for key, value in plain.items() if key != "columns" and key not in head}
    imported = "imported_from" in plain and not plain.get("drawn_from_data")
    lines = [(_IMPORT_HEAD if imported else _DRAFT_HEAD) if awaiting else "", _block(head), "columns:\n"]
    for column in plain["columns"]:
        spec = {key: value for key, value in column.items() if key != "name"}
        lines.append(f"  # {_ADVICE[spec['kind']]}\n" if awaiting and not imported else "")
        lines.append(f"  {_flow(column['name'])}: {_flow(spec)}\n")
    return "".join(lines) + (_block(rest) if rest else "")


def _block(plain: Mapping[str, Any]) -> str:
    return str(yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


def _flow(value: object) -> str:
    text = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**9, default_flow_style=True
    )
    return str(text).removesuffix("...\n").strip()


def _read_text(path: Path) -> str:
    if path.suffix not in ENDINGS:
        hint = "; dpcipher schema export RELEASE -o FILE.yaml writes the schema of a release"
        raise SchemaError(
            f"a schema file must end in .yaml, .yml or .json{hint if path.suffix == '.parquet' else ''}"
        )
    if not path.is_file():
        raise SchemaError("there is no such file")
    if path.stat().st_size > MAX_BYTES:
        raise SchemaError(f"a schema file must be smaller than {MAX_BYTES} bytes")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError("a schema file must be UTF-8 text; save it as UTF-8") from None
    except OSError as wrong:
        raise SchemaError(f"cannot be read ({wrong.strerror})") from None


def _where(wrong: Exception) -> str:
    mark = getattr(wrong, "problem_mark", None)
    return f"line {mark.line + 1}: {getattr(wrong, 'problem', '')}" if mark else str(wrong)


class _Loader(yaml.SafeLoader):  # type: ignore[misc,unused-ignore]
    """YAML as people mean it: `no`, `01` and `2024-01-31` are texts; keys appear once; no aliases to blow up.

    A tag (`!!int`, `!!binary`) may only say what the text would be without it: YAML 1.1 also counts in sixties, at any length.
    """

    yaml_constructors: ClassVar[dict[str | None, Any]] = {}
    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not allowed", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise _wrong("a mapping must hold keys and values", node)
        plain: dict[Any, Any] = {}
        for key_node, value in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str) and not is_number(key):
                raise _wrong("a key must be a text or a number", key_node)
            if str(key) in plain:
                raise _wrong("a key appears twice", key_node)
            plain[str(key)] = self.construct_object(value, deep=True)
        return plain

    def construct_truth(self, node: Any) -> bool:
        """True or false, written out."""
        text = self.construct_scalar(node)
        if text.lower() not in ("true", "false"):
            raise _wrong("a truth value must be true or false", node)
        return bool(text.lower() == "true")

    def construct_whole(self, node: Any) -> int:
        """A whole number in plain digits."""
        text = self.construct_scalar(node)
        if not _WHOLE.match(text) or len(text) > MAX_DIGITS:
            raise _wrong(f"a whole number must be written in at most {MAX_DIGITS} digits", node)
        return int(text)

    def construct_real(self, node: Any) -> float:
        """A number in plain digits."""
        text = self.construct_scalar(node)
        if not _FLOAT.match(text) and not _WHOLE.match(text):
            raise _wrong("a number must be written in digits", node)
        return float(text)


def _wrong(problem: str, node: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc,unused-ignore]
    """Quotes every text that some YAML reader, of version 1.1 or ours, would take for something else."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        key: list(rules) for key, rules in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, data: str) -> Any:
        """Plain where that is safe, in double quotes, which can hold anything on one line, where it is not."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if _PLAIN.match(data) else '"')


# Version 1.2 takes digits for a number, also after a zero: 04109 is a code.
_PLAIN = re.compile(r"^(?!\d+\Z|0o)\w[\w .>×-]*\Z(?<! )")
_WHOLE = re.compile(r"^[-+]?(0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$")
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _WHOLE, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
for _tag, _read in {
    "null": yaml.SafeLoader.construct_yaml_null,
    "bool": _Loader.construct_truth,
    "int": _Loader.construct_whole,
    "float": _Loader.construct_real,
    "str": yaml.SafeLoader.construct_yaml_str,
    "seq": yaml.SafeLoader.construct_yaml_seq,
    "map": yaml.SafeLoader.construct_yaml_map,
}.items():
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _read)
_Loader.add_constructor(None, yaml.SafeLoader.construct_undefined)
_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^[yYnN]$"), list("yYnN"))
