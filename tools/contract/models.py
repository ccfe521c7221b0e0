"""From JSON Schema to the source of attrs classes and enums."""

import keyword
import re
from typing import Any

from attrs import define, field

from tools.contract.spec import SpecError

RULES = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minimum": "minimum",
    "maximum": "maximum",
    "pattern": "pattern",
    "maxItems": "max_items",
    "x-clamp": "clamp",
}


def attribute_name(key: str) -> str:
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key.replace("-", "_").replace(".", "_")).lower()
    return name + "_" if keyword.iskeyword(name) else name


def member_name(value: str) -> str:
    name = re.sub(r"\W+", "_", value).upper() or "EMPTY"
    return f"V{name}" if name[0].isdigit() else name


@define
class Module:
    """The source of one generated module: its classes in the order of need, and the entities it imports."""

    name: str
    entities: dict[str, dict[str, Any]]
    is_entities: bool = False
    blocks: dict[str, str] = field(factory=dict)
    imports: set[str] = field(factory=set)
    _pending: set[str] = field(factory=set)

    def expression(self, schema: dict[str, Any], where: str) -> str:
        """The Python type of a schema; writes the classes that it needs."""
        if "$ref" in schema:
            return self._entity(schema["$ref"].rsplit("/", 1)[1], where)
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "oneOf" in schema or "anyOf" in schema:
            parts = [self.expression(part, where) for part in schema.get("oneOf") or schema["anyOf"]]
            return " | ".join(dict.fromkeys(parts))
        kinds = schema.get("type")
        if kinds is None:
            return "Any"
        if isinstance(kinds, list):
            bare = {key: value for key, value in schema.items() if key != "type"}
            parts = [self.expression({**(bare if kind != "null" else {}), "type": kind}, where) for kind in kinds]
            return " | ".join(parts)
        return self._simple(kinds, schema, where)

    def _simple(self, kind: str, schema: dict[str, Any], where: str) -> str:
        match kind:
            case "string" if "enum" in schema:
                return self._enum(schema, where)
            case "string":
                return "datetime" if schema.get("format") == "date-time" else "str"
            case "integer":
                return "int"
            case "number":
                return "float"
            case "boolean":
                return "bool"
            case "null":
                return "None"
            case "array":
                return f"list[{self.expression(schema.get('items', {}), where)}]"
            case "object" if "properties" in schema:
                return self.declare(schema.get("title"), schema, where)
            case "object":
                extra = schema.get("additionalProperties")
                return f"dict[str, {self.expression(extra, where) if isinstance(extra, dict) else 'Any'}]"
        raise SpecError(f"{where}: cannot express {schema!r}")

    def _entity(self, name: str, where: str) -> str:
        schema = self.entities.get(name)
        if schema is None:
            raise SpecError(f"{where}: no schema {name}")
        if self.is_entities:
            if name not in self.blocks and name not in self._pending:
                self.entity(name)
        else:
            self.imports.add(name)
        return name

    def entity(self, name: str) -> None:
        schema = self.entities[name]
        if schema.get("type") == "object" and "properties" in schema:
            self.declare(name, schema, name)
        elif schema.get("type") == "string" and "enum" in schema:
            self._enum({**schema, "title": name}, name)
        else:
            self.blocks[name] = f"{name} = {self.expression(schema, name)}\n"

    def _enum(self, schema: dict[str, Any], where: str) -> str:
        title = schema.get("title")
        if title is None:
            return "Literal[" + ", ".join(repr(v) for v in schema["enum"]) + "]"
        if title in self.entities and not self.is_entities:
            self.imports.add(title)
            return str(title)
        lines = [f"class {title}(StrEnum):", _doc(schema, "One of the values that spec/ lists.")]
        lines += [f"    {member_name(value)} = {value!r}" for value in schema["enum"]]
        self._add(title, "\n".join(lines) + "\n", where)
        return str(title)

    def declare(self, name: str | None, schema: dict[str, Any], where: str) -> str:
        """Write the class of an object schema and return its name."""
        if name is None:
            raise SpecError(f"{where}: an object with properties needs a title")
        if "additionalProperties" not in schema:
            raise SpecError(f"{where}: {name}: additionalProperties is not stated")
        self._pending.add(name)
        required = set(schema.get("required", ()))
        properties: dict[str, Any] = schema["properties"]
        body = [self._field(key, prop, key in required, f"{where}.{key}") for key, prop in properties.items()]
        head = ["@frozen(kw_only=True)", f"class {name}:", _doc(schema, f"{where} of spec/.")]
        self._add(name, "\n".join([*head, "", *body]) + "\n", where)
        return name

    def _field(self, key: str, prop: dict[str, Any], required: bool, where: str) -> str:
        attribute = attribute_name(key)
        kind = self.expression(prop, where)
        options: list[str] = []
        if "const" in prop and required:
            options.append(f"default={prop['const']!r}")
        elif "default" in prop:
            options.append(f"default={self._default(prop, kind)}")
        elif not required:
            kind += " | Unset"
            options.append("default=UNSET")
        metadata = [f"{RULES[rule]!r}: {prop[rule]!r}" for rule in RULES if rule in prop]
        if attribute != key:
            metadata.append(f"'key': {key!r}")
        if metadata:
            options.append("metadata={" + ", ".join(metadata) + "}")
        return f"    {attribute}: {kind}" + (f" = field({', '.join(options)})" if options else "")

    def _default(self, prop: dict[str, Any], kind: str) -> str:
        value = prop["default"]
        if prop.get("type") == "string" and "enum" in prop and "title" in prop:
            return f"{kind}.{member_name(value)}"
        if isinstance(value, list | dict) and not value:
            return f"Factory({type(value).__name__})"
        return repr(value)

    def _add(self, name: str, source: str, where: str) -> None:
        if self.blocks.setdefault(name, source) != source:
            raise SpecError(f"{where}: two different schemas are titled {name}")


def _doc(schema: dict[str, Any], fallback: str) -> str:
    text = " ".join(str(schema.get("description", fallback)).split()).replace('"""', "'''").replace("\\", "\\\\")
    return f'    """{text}"""' if not text.endswith('"') else f'    """{text} """'
