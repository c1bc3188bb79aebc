#!/usr/bin/env python3
"""Holds rendered objects of kinds that Kubernetes itself does not know against the definitions of their makers:
check_crds.py DEFINITIONS RENDERED…

DEFINITIONS is a directory with CustomResourceDefinitions. Strict: a field that a definition does not have is a fault, although a cluster
would drop it in silence.
"""

import pathlib
import sys

import jsonschema
import yaml


def strict(schema: object) -> object:
    """The schema of a definition as JSON Schema understands it, with no further fields."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    if isinstance(schema.get("pattern"), str):
        # Go takes its flags anywhere, Python at the beginning only.
        made["pattern"] = schema["pattern"].replace("^(?i)", "(?i)^")
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if "properties" in schema and isinstance(schema["properties"], dict) and schema.get("type") == "object":
        if "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    return made


def definitions(directory: str) -> dict[tuple[str, str], dict]:
    """The schema of each kind, by its apiVersion and name."""
    found = {}
    for file in pathlib.Path(directory).glob("*.yaml"):
        for crd in yaml.safe_load_all(file.read_text()):
            if not crd or crd.get("kind") != "CustomResourceDefinition":
                continue
            for version in crd["spec"]["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                found[(f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])] = schema
    return found


def main(directory: str, rendered: list[str]) -> None:
    known = definitions(directory)
    checked = set()
    for file in rendered:
        for thing in yaml.safe_load_all(pathlib.Path(file).read_text()):
            if not thing:
                continue
            kind = (thing["apiVersion"], thing["kind"])
            if kind in known:
                try:
                    jsonschema.validate(thing, known[kind])
                except jsonschema.ValidationError as error:
                    where = "/".join(str(part) for part in error.absolute_path)
                    sys.exit(f"{pathlib.Path(file).name}: {thing['kind']} {where}: {error.message}")
                checked.add(thing["kind"])
    wanted = {"ServiceMonitor", "PrometheusRule", "HTTPRoute"}
    if not wanted <= checked:
        sys.exit(f"no set of values renders {', '.join(sorted(wanted - checked))}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
