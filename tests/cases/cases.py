"""Runs the cases side by side and holds what came out against known_wrong.py. tests/cases/run starts it."""
import argparse
import concurrent.futures
import importlib
import json
import os
import re
import sys
import threading
import time
import traceback

import harness
from known_wrong import KNOWN_WRONG

# Each registers its cases.
for module in ("blame", "configuration", "environment", "headers_keys", "http_cases", "moving", "operations", "outbox_cases",
               "payloads", "schema_changes", "slow", "sql_shapes", "topology"):
    importlib.import_module(module)

PRINTING = threading.Lock()


def run_case(case):
    """Runs one case; returns what came out, for the results' file."""
    began = time.time()
    sites = []

    def site(**options):
        sites.append(harness.Site(case["name"], **options))
        return sites[-1]

    broken = ""
    try:
        case["fn"](site)
    except Exception:
        broken = traceback.format_exc()
    for one in sites:
        one.close()
    result = {key: case[key] for key in ("name", "kind", "source", "situation", "right")}
    for what in ("problems", "doubts", "notes"):
        result[what] = [text for one in sites for text in getattr(one, what)]
    if broken:
        result["verdict"] = "BROKEN"
    elif result["problems"]:
        result["verdict"] = "WRONG"
    else:
        result["verdict"] = "unclear" if result["doubts"] else "right"
    result["broken"] = broken
    result["known"] = KNOWN_WRONG.get(case["name"])
    result["passed"] = result["verdict"] == "WRONG" if result["known"] else result["verdict"] in ("right", "unclear")
    result["seconds"] = round(time.time() - began, 1)
    return result


def lines_of(result, verbose):
    known = f"  known: {result['known']}" if result["known"] else ""
    yield f"{result['verdict']:7} {result['name']:34} {result['kind']:14} {result['seconds']:5.1f} s{known}"
    if result["passed"] and not verbose:
        return
    if result["known"] and result["verdict"] != "WRONG":
        yield "        this case is not wrong: remove it from known_wrong.py"
    for mark, what in (("!", "problems"), ("?", "doubts"), (".", "notes")):
        for text in result[what]:
            yield f"        {mark} " + text.replace("\n", "\n          ")
    if result["broken"]:
        yield result["broken"]


def run_all(cases, jobs, verbose):
    results = []

    def one(case):
        result = run_case(case)
        with PRINTING:
            results.append(result)
            print("\n".join(lines_of(result, verbose)), flush=True)

    together = [case for case in cases if not case["alone"]]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        # A case that breaks is a result; whatever else is raised ends the run.
        for done in [pool.submit(one, case) for case in together]:
            done.result()
    for case in cases:
        if case["alone"]:
            one(case)
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    unknown = sorted(set(KNOWN_WRONG) - {case["name"] for case in harness.CASES})
    if unknown:
        sys.exit(f"known_wrong.py names unknown cases: {', '.join(unknown)}")
    if options.names:
        cases = [case for case in harness.CASES if any(re.search(name, case["name"]) for name in options.names)]
    else:
        cases = [case for case in harness.CASES if options.all or not case["slow"]]
    if not cases:
        sys.exit(f"no case is called like {' or '.join(options.names)}")
    harness.make_template_database()
    results = run_all(cases, options.jobs, options.verbose)
    with open(os.path.join(harness.SCRATCH, "results.json"), "w") as file:
        json.dump(results, file, indent=1)
    failed = [result["name"] for result in results if not result["passed"]]
    known = sum(1 for result in results if result["known"] and result["passed"])
    if failed:
        print("failed: " + " ".join(sorted(failed)))
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed ({known} of those that passed are known to be wrong)")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
