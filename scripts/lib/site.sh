# shellcheck shell=bash
# Installs what builds the site of the documentation into .deps/: Zensical from PyPI and Mermaid from npm, each pinned by
# its hash. Sourced by scripts/setup and scripts/site.

mermaid_version=12.3.0
mermaid_sha256=be0684e8d20bfc874df12c0f04927a5c482f57f2200eec54cca52a4583fd4040
# shellcheck disable=SC2034  # for scripts/site
zensical=$deps/site/bin/zensical
mermaid=$deps/site/mermaid.min.js

missing_site_packages() {
    missing_wheel_packages
    command -v npm >/dev/null || echo npm
}

site_recipe() { sha256sum "$root/scripts/lib/site-requirements.txt" | cut -d' ' -f1; echo "$mermaid_sha256"; }

setup_site() {
    local folder=$deps/site
    if [[ -e $folder/.complete && $(<"$folder/.complete") == "$(site_recipe)" ]]; then
        say "  site: there"
        return
    fi
    say "  fetching Zensical and Mermaid $mermaid_version"
    rm -rf -- "$folder"
    install_wheels "$folder" site-requirements.txt
    (cd -- "$scratch" && npm pack --silent "mermaid@$mermaid_version" >/dev/null) ||
        fail "could not fetch Mermaid $mermaid_version; npm's reason is above"
    echo "$mermaid_sha256  $scratch/mermaid-$mermaid_version.tgz" | sha256sum --check --quiet ||
        fail "the package of Mermaid $mermaid_version is not the expected one"
    tar --extract --gzip --to-stdout --file "$scratch/mermaid-$mermaid_version.tgz" package/dist/mermaid.min.js >"$mermaid"
    site_recipe >"$folder/.complete"
}
