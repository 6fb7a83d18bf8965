# shellcheck shell=bash
# Writes the documents that are made of the program's own tables. Sourced by scripts/documents and the test that compares
# them with the checkout. Needs scripts/lib/matrix.sh.

write_documents() { # PROGRAMS FOLDER
    local reference=$2/docs/reference
    mkdir -p -- "$reference"
    "$1/pawl-documents" "$2"
    "$1/pawl" manual --markdown >"$reference/commands.md"
    python3 "$root/scripts/lib/schema-page.py" "$root/migrations" >"$reference/schema.md"
    python3 "$root/scripts/lib/json-page.py" "$root/docs/reference/json" >"$reference/json-output.md"
    write_versions "$2"
}

# From the pages themselves, so after all others.
write_llms() { # FOLDER
    local text
    text=$(python3 "$root/scripts/lib/site-pages.py" llms "$root")
    printf '%s\n' "$text" >"$1/docs/llms.txt"
}
