#!/usr/bin/env bash
# What conf/ has for Prometheus and Grafana, and what docs/observe.md says of it, against the metrics
# that the source has.
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

grep -oE '"pawl_[a-z_]+"' "$root/framework/ops/metrics_text.cpp" | tr -d '"' | sort -u >"$work/metrics"
[[ -s $work/metrics ]] || fail "found no metrics in framework/ops/metrics_text.cpp"

# The names in a file, without what Prometheus adds to those of histograms.
names_in() { grep -oE 'pawl_[a-z_]+' "$1" | sed -E 's/_(bucket|sum|count)$//' | sort -u; }
for file in conf/prometheus/alerts.yml conf/grafana/pawl.json; do
    unknown=$(names_in "$root/$file" | comm -23 - "$work/metrics")
    [[ -z $unknown ]] || fail "$file names what is no metric: $unknown"
done
# shellcheck disable=SC2016 # backticks are Markdown's
grep -oE '`pawl_[a-z_]+`' "$root/docs/observe.md" | tr -d '`' | sort -u >"$work/documented"
difference=$(comm -3 "$work/metrics" "$work/documented")
[[ -z $difference ]] || fail "docs/observe.md and the metrics differ: $difference"

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
