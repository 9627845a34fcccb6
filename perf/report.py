"""Writes perf/README.md from perf/results/<machine>/<what>.json and perf/targets.json.

    perf/report            write it
    perf/report --check    fail if it is not current, or if a file of results or of targets does not conform

A target's cell has the figures of all its rows, from the least to the largest, and is judged by the worst of them at
the precision that is shown. No third-party modules.
"""

import argparse
import fnmatch
import json
import sys
import textwrap

import results_schema
from provenance import ROOT
from results_schema import is_number, is_text, maybe

PERF = ROOT / "perf"
README = PERF / "README.md"
UNITS = {"x": 1, "%": 100, "s": 1e-3, "min": 1 / 60e3}  # times are in ms
TARGET = {"id": is_text, "what": is_text, "better": ("higher", "lower").__contains__, "unit": UNITS.__contains__,
          "must": is_number, "aim": maybe(is_number), "file": is_text, "figure": is_text, "command": is_text,
          "rows": lambda value: isinstance(value, list) and all(map(is_text, value)), "why": maybe(is_text),
          "kind": ("times", "ratios", "values").__contains__}

HEAD = """\
# What was measured

<!-- Written by perf/report from perf/results/ and perf/targets.json: do not edit. -->

[experiments.md](experiments.md) tells what was tried and what it gave. [results/](results) has every figure with its
machine, commit, versions and command; a new run takes the place of the rows that it measures. Contestants are
interleaved in one run, because machines are shared and change their speed: ratios count, and above 1x sylvit is faster.
They are medians of the rounds' ratios; quartiles stand in brackets. A run "migrated from perf/README.md" has the commit
and date of the page that stated its figures; what that did not say is null or absent.

## How to repeat it

Build with `ci/build`. Each program prints a table and writes `results/<machine>/<what>.json`; `--machine NAME` names
the machine, `--results FOLDER` keeps a trial out of here. Then `perf/report` writes this page, and `ci/test` checks
with `perf/report --check` that it is current.

| program | what it measures | needs |
|---|---|---|
| `perf/attention` | attention beside PyTorch; 16-bit types; with `--other` a second build | `perf/peers`, several GB |
| `perf/vit` | a ViT beside PyTorch, onnxruntime and OpenVINO; training, memory, gate, start | `perf/peers` |
| `perf/vit --check` | logits, loss and all gradients against timm's | `perf/peers` |
| `perf/products` | the builtin matrix product beside oneMKL's | |
| `perf/tuning` | the shipped tuning tables against a wide search and other tables | |
| `perf/start` | cold and warm start; takes the times of `ci/test` and the like by hand | |
"""

LEGEND = """\
A cell has the least and the largest of a target's rows, and the worst counts. **short**: what must be reached is
missed; *ahead*: the aim is reached, too; no mark: between the two, or there is no aim; -: not measured.
"""


class Figure:
    """The least and the largest of what one row says of a target, and its quartiles."""

    def __init__(self, row, name, item, target):
        self.row, self.note, scale = row["row"], row.get("note"), UNITS[target["unit"]]
        item = {"value": item} if is_number(item) else item
        one = next((item[key] for key in ("median", "value", "best") if key in item), None)
        self.ends = [scale * end for end in item.get("range", [one, one])]
        self.quartiles = [scale * end for end in item.get("quartiles") or []]
        self.name = name if any(letter in target["figure"] for letter in "*?[") else None


def shown(value, unit):
    return f"{value:.2f}" if unit == "x" else f"{value:.0f}" if unit == "%" else f"{value:.3g}"


def with_unit(text, unit):
    return text + (unit if unit in "x%" else f" {unit}")


def span(ends, unit):
    return with_unit("-".join(dict.fromkeys(shown(end, unit) for end in ends)), unit)


def figures(runs, target):
    return [Figure(row, name, item, target)
            for run in runs for row in run["rows"] for name, item in row.get(target["kind"], {}).items()
            if any(fnmatch.fnmatchcase(row["row"], pattern) for pattern in target["rows"])
            and fnmatch.fnmatchcase(name, target["figure"])]


def reaches(target, figure, goal):
    """Whether the worse end of a figure, as it is shown, is as good as the goal."""
    higher = target["better"] == "higher"
    worst = float(shown((min if higher else max)(figure.ends), target["unit"]))
    return worst >= goal if higher else worst <= goal


def cell(target, found):
    if not found:
        return "-"
    ends = [end for figure in found for end in figure.ends]
    text = span([min(ends), max(ends)], target["unit"])
    if not all(reaches(target, figure, target["must"]) for figure in found):
        return f"{text} **short**"
    ahead = target["aim"] is not None and all(reaches(target, figure, target["aim"]) for figure in found)
    return f"{text} *ahead*" if ahead else text


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def goal_text(target, goal):
    return "" if goal is None else with_unit(f"{goal:g}", target["unit"])


def targets_table(targets, machines):
    names = sorted(machines)
    lines = [row("target", "must", "aim", *names), "|---" * (len(names) + 3) + "|"]
    command = None
    for target in targets:
        if target["command"] != command:
            command = target["command"]
            lines.append(row(f"**`{command}`**", "", "", *("" for _ in names)))
        sign = "" if target["better"] == "higher" else "≤ "
        goals = (sign + goal_text(target, goal) if goal is not None else "" for goal in (target["must"], target["aim"]))
        cells = (cell(target, figures(machines[name].get(target["file"], []), target)) for name in names)
        lines.append(row(target["what"], *goals, *cells))
    return lines


def item(text):
    return textwrap.wrap(text, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)


def missed_by(target, found):
    """The figures that miss what must be reached, with their quartiles and notes."""
    texts, unit = {}, target["unit"]
    for figure in found:
        if not reaches(target, figure, target["must"]):
            name = f" ({figure.name})" if figure.name else ""
            spread = " ({}-{})".format(*(shown(end, unit) for end in figure.quartiles)) if figure.quartiles else ""
            texts.setdefault(figure.note, []).append(f"{figure.row}{name} {span(figure.ends, unit)}{spread}")
    return "; ".join("; ".join(rows) + (f" [{note}]" if note else "") for note, rows in texts.items())


def short_lists(targets, machines):
    missed, far = [], {}
    for target in targets:
        found = {name: figures(files.get(target["file"], []), target) for name, files in sorted(machines.items())}
        short = {name: missed_by(target, rows) for name, rows in found.items()}
        places = ". ".join(f"{name}: {text}" for name, text in short.items() if text)
        if places:
            missed += item(f"**{target['what']}** (must be {goal_text(target, target['must'])}). {places}.")
        if target["aim"] is None:
            continue
        behind = [name for name, rows in found.items()
                  if not all(reaches(target, figure, target["aim"]) for figure in rows)]
        where = "" if len(behind) == sum(map(bool, found.values())) else f" on {', '.join(behind)}"
        if behind:
            text = f"{target['what']} ({goal_text(target, target['aim'])}){where}"
            far.setdefault(target["why"] or "Not explained.", []).append(text)
    return missed, [line for why, texts in far.items() for line in item(f"{'; '.join(texts)}. {why}")]


def machines_list(machines):
    lines = []
    for name, files in sorted(machines.items()):
        newest = max((run for runs in files.values() for run in runs), key=lambda run: run["date"])["machine"]
        facts = ", ".join(filter(None, (newest["cpu"], newest["family"], f"{newest['cores']} cores", newest["os"])))
        dates = ", ".join(f"{what} {max(run['date'] for run in runs)}" for what, runs in sorted(files.items()))
        lines += item(f"[{name}](results/{name}): {facts}; {dates}")
    return lines


def page(targets, machines):
    missed, far = short_lists(targets, machines)
    lines = [*HEAD.splitlines(), "", "## Targets", "", *LEGEND.splitlines(), "", *targets_table(targets, machines), "",
             "## What is short", "", *(missed or ["- Nothing."]), "",
             "Aims that are not reached everywhere, and why:", "", *far, "", "## Machines", "",
             "With the files of each and the dates of their newest runs.", "", *machines_list(machines)]
    return "\n".join(lines) + "\n"


def load_targets():
    path = PERF / "targets.json"
    targets = json.loads(path.read_text("utf-8"))
    found = [sentence for target in targets
             for sentence in results_schema.mistakes(target, TARGET, {}, f"target {target.get('id')}")]
    if found:
        sys.exit("\n".join(f"{path}: {sentence}" for sentence in found))
    return targets


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if perf/README.md is not current")
    options = parser.parse_args()
    machines = {}
    for path in sorted((PERF / "results").glob("*/*.json")):
        machines.setdefault(path.parent.name, {})[path.stem] = results_schema.load(path)
    targets = load_targets()
    for target in targets:
        if not any(figures(files.get(target["file"], []), target) for files in machines.values()):
            sys.exit(f"perf/targets.json: target {target['id']} names rows or a figure that no file of results has")
    text = page(targets, machines)
    if not options.check:
        README.write_text(text, "utf-8")
    elif README.read_text("utf-8") != text:
        sys.exit("perf/README.md is not what perf/results/ and perf/targets.json give: run perf/report")


if __name__ == "__main__":
    main()
