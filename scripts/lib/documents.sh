# shellcheck shell=bash
# Writes the documents that are made of the program's own tables. Sourced by scripts/documents and the test that compares
# them with the checkout. Needs scripts/lib/matrix.sh.

write_documents() { # PROGRAMS FOLDER
    local reference=$2/docs/reference
    mkdir -p -- "$reference"
    "$1/pawl-documents" "$2"
    "$1/pawl" manual --markdown >"$reference/commands.md"
    python3 "$root/scripts/lib/schema-page.py" "$root/migrations" >"$reference/schema.md"
    json_page >"$reference/json-output.md"
    write_versions "$2"
}

# The schemas of commands with --json.
json_page() {
    local name
    cat <<'MARKDOWN'
# JSON output

Every command that prints data has `--json`, and this page links the schema of its output. Keys are only added in a minor
version. An unknown value is `null`. Timestamps are RFC 3339 in UTC. The schemas mark prose, which is not stable.

| Command | Schema |
|---|---|
MARKDOWN
    for name in "$root"/docs/reference/json/*.json; do
        name=$(basename -- "$name" .json)
        echo "| \`${name//-/ } --json\` | [$name.json](json/$name.json) |"
    done
}

# From the pages themselves, so after all others.
write_llms() { # FOLDER
    local text
    text=$(python3 "$root/scripts/lib/site-pages.py" llms "$root")
    printf '%s\n' "$text" >"$1/docs/llms.txt"
}
