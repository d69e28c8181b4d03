# Sourced by the scripts: finds a Python and keeps .venv equal to the lock file.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# Print the first Python >= 3.11 that can make virtual environments, or say what to install.
find_python() {
    local candidate without_venv=""
    for candidate in python3.11 python3.12 python3.13 python3; do
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$candidate"
            return
        fi
        without_venv="$candidate"
    done
    if [ -n "$without_venv" ]; then
        echo "The venv module of $without_venv is missing: install it, on Debian with 'apt-get install python3-venv'." >&2
    else
        echo "No Python 3.11 or newer was found: install one with its venv module, on Debian with 'apt-get install python3 python3-venv'." >&2
    fi
    exit 1
}

# Install the locked packages of extras and groups into .venv, and print a line for each; Python compiles
# what it comes to import. With dependencies, pip would look up extras (coverage[toml]) without their pins.
install() {
    "$root/.venv/bin/python" "$root/scripts/requirements" "$@" >"$root/.venv/requirements.txt"
    PYTHONUNBUFFERED=1 "$root/.venv/bin/python" -m pip install --disable-pip-version-check \
        --no-compile --no-deps --progress-bar off --require-hashes --requirement "$root/.venv/requirements.txt" |
        sed -u -n -E \
            -e 's/^(Collecting|Processing) ([^ ]+).*/  \2/p' -e 's/^(Installing) collected .*/\1 them/p' >&2
}

# Install this checkout, and its extension if it can be built; `pip` alone would hide why it cannot.
install_checkout() {
    rm -f "$root"/rule_core/kernels/*.so
    "$root/.venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps \
        --no-build-isolation --editable "$root"
    if command -v cc >/dev/null && ! "$root/.venv/bin/python" -c 'import rule_core.kernels._sweep' 2>/dev/null; then
        echo "The extension was not built, so numpy measures tensors, which is slower; CONTRIBUTING.md says how to see why." >&2
    fi
}

# Make .venv from the lock file, with the development tools if $1 is "dev".
# It is used again if it was finished from the same file in the same folder; tools are added to it,
# and an extension whose sources have changed is built again.
# The marks are removed first and written last, so that an interrupted set-up starts over.
ensure_venv() {
    local wanted finished sources python tools="${1:-}" venv="$root/.venv"
    wanted="$(echo "$root" && cat "$root/pyproject.toml" "$root/uv.lock")"
    sources="$(cat "$root/setup.py" "$root"/rule_core/kernels/*.[ch])"
    finished="$(cat "$venv/made-from" 2>/dev/null || true)"
    [ -x "$venv/bin/python" ] || finished=""
    if [ "$finished" != "$wanted dev" ] && [ "$finished" != "$wanted $tools" ]; then
        rm -f "$venv/made-from" "$venv/built-from"
        if [ "$finished" != "$wanted " ]; then
            python="$(find_python)"
            "$python" -m venv --clear "$venv"
        fi
        echo "Installing the packages of uv.lock${tools:+ with development tools} into .venv; this happens once." >&2
        install rule-runner build ${tools:+dev profiler}
        install_checkout
        echo "$sources" >"$venv/built-from"
        echo "$wanted $tools" >"$venv/made-from"
    elif [ "$(cat "$venv/built-from" 2>/dev/null || true)" != "$sources" ]; then
        rm -f "$venv/built-from"
        install_checkout
        echo "$sources" >"$venv/built-from"
    fi
}
