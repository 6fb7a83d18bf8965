#!/usr/bin/env bash
# Compares the files for Prometheus and Grafana in conf/, and the pages about metrics, with the metrics
# and labels of the program.
#   monitoring_files_test.sh
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl monitoring.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

fail() {
    printf 'monitoring files: %s\n' "$*" >&2
    exit 1
}

promtool check rules "$root/conf/prometheus/alerts.yml"
promtool test rules "$root/tests/ops/alerts_test.yml"
for alert in $(sed -n 's/^ *- alert: //p' "$root/conf/prometheus/alerts.yml"); do
    grep -q "alertname: $alert\$" "$root/tests/ops/alerts_test.yml" || fail "alerts_test.yml does not test $alert"
done

cp -- "$root/conf/prometheus/alerts.yml" "$work"
"$root/tests/docs/blocks" "$root/docs/observe.md" prometheus.yml >"$work/prometheus.yml"
promtool check config "$work/prometheus.yml"

# The rows of the table: {"pawl_lag_messages", "gauge", "topic, partition", ...
grep -oE '\{"pawl_[a-z_]+", "[a-z]+", "[^"]*"' "$root/framework/ops/metrics_text.cpp" >"$work/rows"
[[ -s $work/rows ]] || fail "found no metrics in framework/ops/metrics_text.cpp"
cut -d '"' -f 2 "$work/rows" | sort -u >"$work/metrics"
# Prometheus adds instance, job, and le.
{ cut -d '"' -f 6 "$work/rows" | tr -d ' ' | tr ',' '\n'; printf '%s\n' instance job le; } | grep . | sort -u >"$work/labels"

# The names in a file, without what Prometheus adds to those of histograms.
names_in() { grep -oE 'pawl_[a-z_]+' "$1" | sed -E 's/_(bucket|sum|count)$//' | sort -u; }
# Labels that its queries group by, and that its texts show.
labels_in() { grep -oE 'by \([a-z_, ]+\)|\$labels\.[a-z_]+|\{\{[a-z_]+\}\}' "$1" |
    sed -E 's/^by|\$labels\.//; s/[(){},]/ /g' | tr ' ' '\n' | grep . | sort -u; }
for file in conf/prometheus/alerts.yml conf/grafana/pawl.json; do
    unknown=$(names_in "$root/$file" | comm -23 - "$work/metrics")
    [[ -z $unknown ]] || fail "$file names what is not a metric: $unknown"
    unknown=$(labels_in "$root/$file" | comm -23 - "$work/labels")
    [[ -z $unknown ]] || fail "$file names what is not a label: $unknown"
done
# shellcheck disable=SC2016 # backticks are Markdown's
documented() { { grep -oE '`pawl_[a-z_]+' "$root/docs/$1" || true; } | tr -d '`' | sort -u; }
difference=$(documented reference/metrics.md | comm -3 "$work/metrics" -)
[[ -z $difference ]] || fail "docs/reference/metrics.md and the metrics differ: $difference"
unknown=$(documented observe.md | comm -13 "$work/metrics" -)
[[ -z $unknown ]] || fail "docs/observe.md names what is not a metric: $unknown"

# Each query of the dashboard is PromQL, with Grafana's variables replaced.
python3 - "$root/conf/grafana/pawl.json" >"$work/dashboard.yml" <<'PYTHON'
import json
import sys

board = json.load(open(sys.argv[1]))
rules = []
for panel in board["panels"]:
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", "5m").replace("$job", "pawl").replace("$topic", ".*")
        rules.append({"record": f"panel:{panel['id']}:{target['refId']}", "expr": query})
# JSON is YAML.
print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
PYTHON
promtool check rules "$work/dashboard.yml"
