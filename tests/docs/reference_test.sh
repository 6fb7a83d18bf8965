#!/usr/bin/env bash
# The documents that scripts/documents writes are those of the checkout.
#   reference_test.sh FOLDER_OF_PROGRAMS
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=scripts/lib/common.sh
source "$root/scripts/lib/common.sh"
# shellcheck source=scripts/lib/matrix.sh
source "$root/scripts/lib/matrix.sh"
# shellcheck source=scripts/lib/documents.sh
source "$root/scripts/lib/documents.sh"

work=$(mktemp -d "${PAWL_TEST_DIR:-${TMPDIR:-/tmp}}/pawl reference.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

write_documents "$(realpath -- "$1")" "$work"
write_llms "$work"
found=0
while IFS= read -r -d '' file; do
    diff -u -- "$root/${file#"$work/"}" "$file" || found=1
done < <(find "$work" -type f -print0)
((found == 0)) || fail "the documents above differ from the program's tables: run scripts/documents"

# Pages that nothing writes any more are removed by hand.
for page in "$root"/docs/reference/*.md; do
    case ${page##*/} in
        index.md | configuration.md | templates.md) ;;
        *) [[ -e $work/docs/reference/${page##*/} ]] || fail "no table gives ${page#"$root/"}; remove it" ;;
    esac
done
