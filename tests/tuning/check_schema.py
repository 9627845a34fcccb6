#!/usr/bin/env python3
"""Checks every shipped tuning table against backends/schema.json, and that the schema refuses what it should."""
import copy
import json
import pathlib
import sys

import jsonschema

backends = pathlib.Path(sys.argv[1])
schema = json.loads((backends / "schema.json").read_text())
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)
failures = []

tables = sorted(backends.glob("*/*.json"))
for path in tables:
    for error in validator.iter_errors(json.loads(path.read_text())):
        failures.append(f"{path.parent.name}/{path.name}, {'/'.join(map(str, error.absolute_path))}: {error.message}")

good = {"schema": 1, "records": [{"kernel": "column_sums", "numbers": {"lanes": 16, "columns": 4}, "origin": "estimated: x"}]}


def changed(change):
    table = copy.deepcopy(good)
    change(table, table["records"][0])
    return table


bad = {
    "a newer schema": lambda t, r: t.update(schema=2),
    "an unknown key": lambda t, r: r.update(tiles=3),
    "an unknown kernel": lambda t, r: r.update(kernel="column_sum"),
    "an unknown number": lambda t, r: r["numbers"].update(rows=1),
    "a number that is missing": lambda t, r: r["numbers"].pop("columns"),
    "a number that is no whole number": lambda t, r: r["numbers"].update(columns=2.5),
    "an origin that says nothing": lambda t, r: r.update(origin="a guess"),
    "a limit of 0": lambda t, r: r.update(max_length=0),
    "providers where there are none": lambda t, r: r.update(providers=["builtin"]),
    "a provider that depends on rows": lambda t, r: r.update(kernel="gemm_provider", providers=["builtin"], max_m=3),
    "an unknown family key": lambda t, r: t.update(family={"vendor": "x"}),
}
if not validator.is_valid(good):
    failures.append("a sound table is refused")
for what, change in bad.items():
    if validator.is_valid(changed(change)):
        failures.append(f"{what} is not refused")

print("\n".join(failures) or f"{len(tables)} tables are sound, and {len(bad)} faults are noticed")
sys.exit(1 if failures or len(tables) < 7 else 0)
