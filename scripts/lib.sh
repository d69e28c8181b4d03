# Sourced by the scripts: finds a Python and keeps .venv equal to the lock files.
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

# Make .venv, unless the one that is there was finished from the same files in the same folder.
# The mark is removed first and written last, so that an interrupted set-up is done again.
ensure_venv() {
    local wanted python venv="$root/.venv"
    wanted="$(echo "$root" && cat "$root/pyproject.toml" "$root"/requirements-*.lock)"
    if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/made-from" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    python="$(find_python)"
    echo "Setting up .venv with the locked dependencies; this happens once." >&2
    rm -f "$venv/made-from"
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --require-hashes \
        --requirement "$root/requirements-dev.lock" --requirement "$root/requirements-build.lock"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps \
        --no-build-isolation --editable "$root"
    echo "$wanted" >"$venv/made-from"
}
