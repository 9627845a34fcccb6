#!/usr/bin/env python3
"""Looks at what sylvit compare writes as its readers do: report.json against its JSON schema, and the page in Chromium, on a
phone and on a desk, in light and in dark: does anything overflow, is anything fetched, is there something to see?

    check_page.py SYLVIT SCHEMA SCREENSHOTS      (SCREENSHOTS: a directory that gets the pictures)

Without a browser only the report is checked, and the exit code is 77: skipped.
"""
import copy
import csv
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import jsonschema
from PIL import Image

sylvit, schema_path, screenshots = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
failures = []

SMALL = ("--width 64 --depth 2 --heads 2 --mlp 96 --patch 8 --image-size 32 --classes 7 --image-count 3 --seconds 0.01 "
         "--dtypes f32,bf16 --sweep 2,4 --batch 3").split()


def compare(*words):
    done = subprocess.run([sylvit, "compare", *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"sylvit compare {' '.join(words)} failed: {done.stderr}")


# ---- the schema

def check_schema(reports):
    schema = json.loads(schema_path.read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    for path in reports:
        for error in validator.iter_errors(json.loads(path.read_text())):
            failures.append(f"{path.parent.name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
    good = json.loads(reports[0].read_text())
    result = lambda r: r["runs"][0]["results"][0]
    faults = {
        "a newer schema": lambda r: r.update(schema=3),
        "an unknown key": lambda r: r["runs"][0].update(colour="red"),
        "a missing key": lambda r: result(r).pop("speeds"),
        "an unknown type": lambda r: result(r).update(dtype="f8"),
        "a text for a number": lambda r: result(r)["speeds"][0].update(gflops="fast"),
        "a time that is a text": lambda r: result(r)["speeds"][0]["ms"].update(samples=["1"]),
        "an engine without a name": lambda r: result(r)["engines"][0].pop("engine"),
        "an unknown pass": lambda r: result(r)["speeds"][0].update({"pass": "sideways"}),
        "no run": lambda r: r.update(runs=[]),
        "a fingerprint that is none": lambda r: r["runs"][0]["models"][0].update(weights_fingerprint="x"),
    }
    for what, change in faults.items():
        bad = copy.deepcopy(good)
        change(bad)
        if validator.is_valid(bad):
            failures.append(f"the schema does not refuse {what}")


# ---- report.csv

def check_csv(folder):
    rows = list(csv.DictReader((folder / "report.csv").open(newline="")))
    results = [(run, one) for run in json.loads((folder / "report.json").read_text())["runs"] for one in run["results"]]
    if len(rows) != len(results):
        failures.append(f"{folder.name}: report.csv has {len(rows)} rows, and there are {len(results)} results")
    for row, (run, one) in zip(rows, results):
        expected = {"machine": run["machine"], "dtype": one["dtype"], "error": one["error"],
                    "model": run["models"][one["model"]]["label"]}
        for speed in one["speeds"]:
            passes = "forward" if speed["pass"] == "forward" else "forward_backward"
            expected[f"{passes}_b{speed['batch']}_ms_median"] = speed["ms"]["median"]
        for column, value in expected.items():
            there = float(row[column] or "nan") if isinstance(value, float) else row[column]
            if there != value:
                failures.append(f"{folder.name}: {column} is {there} in report.csv and {value} in report.json")


# ---- the page

WIDTHS = {"phone": 360, "desk": 1200}
# In an iframe a page has the window size and the colour scheme that the iframe gives it.
CHECK = """
function faults(frame, width, scheme) {
  const page = frame.contentDocument, view = frame.contentWindow, found = [];
  const name = e => e.tagName.toLowerCase() + (e.className.baseVal ?? e.className ? '.' + (e.className.baseVal ?? e.className) : '')
                    + ' "' + e.textContent.trim().slice(0, 40) + '"';
  if (view.matchMedia('(prefers-color-scheme: dark)').matches !== (scheme === 'dark')) found.push('is not ' + scheme);
  page.querySelectorAll('details').forEach(one => one.open = true);
  if (page.documentElement.scrollWidth > width)
    found.push('is ' + page.documentElement.scrollWidth + ' pixels wide');
  const clipped = e => { for (let p = e.parentElement; p; p = p.parentElement)
    if (view.getComputedStyle(p).overflowX !== 'visible') return true; return false; };
  for (const e of page.body.querySelectorAll('*')) {
    const box = e.getBoundingClientRect();
    if (box.width === 0 || clipped(e)) continue;
    if (box.left < -1 || box.right > width + 1) found.push(name(e) + ' reaches beyond the page');
    const svg = e.closest('svg');
    if (svg && svg !== e) {
      const room = svg.getBoundingClientRect();
      if (box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1 || box.bottom > room.bottom + 1)
        found.push(name(e) + ' reaches beyond its plot');
    } else if (!svg && view.getComputedStyle(e).overflowX === 'visible' && view.getComputedStyle(e).display !== 'inline'
               && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
      found.push(name(e) + ' is too narrow for what is in it');
  }
  // Names beside points, and numbers on axes, cover no other text.
  for (const svg of page.querySelectorAll('svg')) {
    const texts = [...svg.querySelectorAll('text')].map(e => [e, e.getBoundingClientRect()]);
    texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2)
        found.push(name(one) + ' covers ' + name(other));
    }));
  }
  for (const entry of view.performance.getEntriesByType('resource')) found.push('fetches ' + entry.name);
  return found;
}
onload = () => {
  const all = {};
  for (const frame of document.querySelectorAll('iframe'))
    all[frame.name] = faults(frame, frame.clientWidth, frame.style.colorScheme);
  const out = document.createElement('pre');
  out.textContent = 'RESULT' + JSON.stringify(all) + 'END';
  document.body.append(out);
};
"""
BROKEN = ("<!doctype html><meta charset=utf-8><title>broken</title><body style='margin:0'><div style='width:1300px'>wide</div>"
          "<svg width=90 height=40><text x=5 y=20>over</text><text x=9 y=22>under</text></svg>"
          "<p style='width:60px'>narrow<span style='display:block;width:90px'>wide</span></p><img src='/missing.png'>")


def frames(names, height):
    html = "<!doctype html><meta charset=utf-8><link rel=icon href='data:,'><body style='margin:0;white-space:nowrap'>"
    for page, device, scheme in names:
        html += (f"<iframe name='{page} {device} {scheme}' src='/{page}/index.html' style='border:0;vertical-align:top;"
                 f"width:{WIDTHS[device]}px;height:{height}px;color-scheme:{scheme}'></iframe>")
    return html


class Pages(http.server.SimpleHTTPRequestHandler):
    asked = []

    def log_message(self, *_):
        pass

    def do_GET(self):
        Pages.asked.append(self.path)
        super().do_GET()


def browser():
    """Chromium or Chrome; not as a snap, which has its own /tmp and sees neither profile nor pictures here."""
    for name in ("chromium", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path and not path.startswith("/snap/"):
            return path
    return None


def chromium(*words):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run([browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                               "--disable-component-update", "--no-first-run", "--hide-scrollbars",
                               f"--user-data-dir={profile}", *words], capture_output=True, text=True, timeout=120).stdout


def check_pages(root, pages):
    every = [(page, device, scheme) for page in pages for device in WIDTHS for scheme in ("light", "dark")]
    (root / "broken").mkdir()
    (root / "broken" / "index.html").write_text(BROKEN)
    (root / "all.html").write_text(frames(every + [("broken", "desk", "light")], 900) + f"<script>{CHECK}</script>")
    shown = [(pages[0], device, scheme) for device in WIDTHS for scheme in ("light", "dark")]
    (root / "shown.html").write_text(frames(shown, 1600))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"

    dom = chromium("--dump-dom", address + "all.html")
    if "<pre>RESULT" not in dom:
        sys.exit("Chromium did not run the check: " + dom[-500:])
    text = dom.split("<pre>RESULT", 1)[1].split("END</pre>")[0]
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        text = text.replace(entity, character)
    result = json.loads(text)
    broken = " ".join(result.pop("broken desk light"))
    for fault in ("pixels wide", "beyond the page", "too narrow", "covers", "fetches"):
        if fault not in broken:
            failures.append(f"the check itself is blind: it does not see that a page {fault}")
    if len(result) != len(every):
        failures.append(f"{len(result)} of {len(every)} pages were checked")
    for name, found in result.items():
        failures.extend(f"{name}: {fault}" for fault in found[:5])
    allowed = {"/all.html", "/broken/index.html", "/missing.png", *(f"/{page}/index.html" for page in pages)}
    failures.extend(f"{path} was fetched" for path in sorted(set(Pages.asked) - allowed))

    picture = screenshots / "compare.png"
    width = sum(WIDTHS[device] for _, device, _ in shown)
    chromium(f"--screenshot={picture}", f"--window-size={width},1600", address + "shown.html")
    server.shutdown()
    left = 0
    for page, device, scheme in shown:
        image = Image.open(picture).convert("RGB").crop((left, 0, left + WIDTHS[device], 1600))
        left += WIDTHS[device]
        image.save(screenshots / f"{page}-{device}-{scheme}.png")
        colours = sorted(image.getcolors(1 << 24), reverse=True)
        background = sum(colours[0][1]) / 3
        if (background > 128) != (scheme == "light"):
            failures.append(f"{page} {device} {scheme}: the background is {colours[0][1]}")
        # Letters and plots: a blank page has one colour.
        if len(colours) < 100 or colours[0][0] > 0.97 * image.width * image.height:
            failures.append(f"{page} {device} {scheme}: there is nothing to see")


with tempfile.TemporaryDirectory() as directory:
    root = pathlib.Path(directory)
    screenshots.mkdir(parents=True, exist_ok=True)
    compare(*SMALL, "--out", str(root / "plain"))
    report = json.loads((root / "plain" / "report.json").read_text())
    # Names as long as drivers make them, with and without spaces, a failure, and numbers that are not there.
    long = copy.deepcopy(report)
    device = long["runs"][0]["devices"][0]
    device["name"] = "Intel(R) Data Center GPU Max 1550 with a very long name " + "x" * 90
    device["estimated"] = True
    failed = long["runs"][0]["results"][1]
    failed.update(error="the device was lost: " + "y" * 200, failed_in="layers", speeds=[])
    failed["accuracy"].update(first_outside="blocks.1.attn", first_outside_error=None)
    long["runs"][0]["command"] = "sylvit compare --images " + "/a/very/long/path" * 12
    (root / "long.json").write_text(json.dumps(long))
    compare("--merge", str(root / "plain" / "report.json"), str(root / "long.json"), "--out", str(root / "merged"))
    # Beside a baseline of a quarter of its times, and a report as the first schema wrote it.
    fast = copy.deepcopy(report)
    for one in fast["runs"][0]["results"]:
        for speed in one["speeds"]:
            speed["ms"] = {key: [ms / 4 for ms in value] if key == "samples" else value / (1 if key == "count" else 4)
                           for key, value in speed["ms"].items()}
            speed["ms"]["count"] = len(speed["ms"]["samples"])
    (root / "fast.json").write_text(json.dumps(fast))
    compare("--merge", str(root / "plain" / "report.json"), "--baseline", str(root / "fast.json"), "--max-slowdown", "1e9",
            "--out", str(root / "beside"))
    old = pathlib.Path(__file__).with_name("schema1.json")
    compare("--merge", str(old), "--out", str(root / "old"))
    every = ["plain", "merged", "beside", "old"]
    check_schema([root / page / "report.json" for page in every])
    for page in every:
        check_csv(root / page)
    if browser():
        check_pages(root, every)

if not browser() and not failures:
    print("report.json keeps to its schema; skipped, because there is no Chromium: the look at the page")
    sys.exit(77)
print("\n".join(failures) or f"report.json keeps to its schema, and the page is sound at {list(WIDTHS.values())} pixels")
sys.exit(1 if failures else 0)
