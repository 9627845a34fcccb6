"""What a file perf/results/<machine>/<what>.json holds.

It has runs, oldest first. A run says how it was made and has rows. A row has times in ms (best, median, quartiles and
samples), ratios (the median of the rounds' ratios as value, and quartiles) and values (numbers); range and value stand
where no more is known of a time. A figure of a row is there once.
"""

import json
import re
import sys

SCHEMA = 1


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_pair(value):
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value)) and value[0] <= value[1]


def is_text(value):
    return isinstance(value, str) and value != ""


def is_samples(value):
    return isinstance(value, list) and value != [] and all(map(is_number, value))


def maybe(check):
    return lambda value: value is None or check(value)


FILE = {"schema": lambda value: value == SCHEMA, "runs": lambda value: isinstance(value, list) and value != []}
RUN = {"source": is_text, "date": lambda value: re.fullmatch(r"\d{4}-\d\d-\d\d", value or ""), "commit": maybe(is_text),
       "command": lambda value: value is None or is_text(value) and not re.search(r"(^|[ =])/", value),
       "machine": lambda value: isinstance(value, dict), "note": maybe(is_text),
       "versions": lambda value: isinstance(value, dict) and all(map(maybe(is_text), value.values())),
       "rows": lambda value: isinstance(value, list) and value != []}
MACHINE = {"name": lambda value: re.fullmatch(r"[a-z0-9-]+", value or ""), "cpu": maybe(is_text),
           "family": maybe(is_text), "cores": maybe(is_number), "os": maybe(is_text)}
ROW = {"row": is_text}
ROW_MAY = {"times": lambda value: isinstance(value, dict), "ratios": lambda value: isinstance(value, dict),
           "values": lambda value: isinstance(value, dict) and all(map(is_number, value.values())), "note": is_text}
TIME_MAY = {"value": is_number, "best": is_number, "median": is_number, "quartiles": maybe(is_pair), "range": is_pair,
            "samples": is_samples}
RATIO_MAY = {"value": is_number, "quartiles": maybe(is_pair), "range": is_pair}


def mistakes(value, must, may, where):
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    found = [f"{where} has no {key}" for key in must if key not in value]
    for key, item in value.items():
        check = must.get(key) or may.get(key)
        if check is None:
            found.append(f"{where} has {key}, which means nothing")
        elif not check(item):
            found.append(f"{where}: {key} cannot be {json.dumps(item, ensure_ascii=False)}")
    return found


def all_mistakes(document, name):
    """What is wrong with a results file of the machine `name`, as sentences."""
    found = mistakes(document, FILE, {}, "the file")
    figures = set()
    for run in [] if found else document["runs"]:
        found += mistakes(run, RUN, {}, "a run")
        if found:
            break
        found += mistakes(run["machine"], MACHINE, {}, "a machine")
        if run["machine"].get("name") != name:
            found.append(f"a run is of {run['machine'].get('name')}, and the folder is {name}")
        for row in run["rows"]:
            wrong = mistakes(row, ROW, ROW_MAY, "a row")
            found += wrong
            for kind, may in (("times", TIME_MAY), ("ratios", RATIO_MAY), ("values", None)) if not wrong else ():
                for figure, item in row.get(kind, {}).items():
                    where = f"{row['row']}: {figure}"
                    if may is not None:
                        found += mistakes(item, {}, may, where)
                        if not {"value", "median", "best", "range"} & set(item):
                            found.append(f"{where} has no figure")
                    if (row["row"], kind, figure) in figures:
                        found.append(f"{where} is there twice")
                    figures.add((row["row"], kind, figure))
    return found


def load(path):
    """The runs of a file. A file that does not conform ends the program."""
    try:
        document = json.loads(path.read_text("utf-8"))
        found = all_mistakes(document, path.parent.name)
    except ValueError as error:
        found = [str(error)]
    if found:
        sys.exit("\n".join(f"{path}: {sentence}" for sentence in found))
    return document["runs"]
