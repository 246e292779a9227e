# Debian packages. To be sourced after common.sh.
RUN_PACKAGES=(g++ cmake ninja-build ccache libhwy-dev libfmt-dev nlohmann-json3-dev libcli11-dev libcpp-httplib-dev
  libssl-dev libspdlog-dev pkgconf python3 unzip
  ca-certificates)
TEST_PACKAGES=(libgtest-dev libgmock-dev clang clang-format clang-tidy)

# install_packages NAME...: installs what is missing, or prints the line that would and ends the script.
install_packages() {
  local package missing=() as_root=()
  command -v dpkg-query >/dev/null || {
    say "no dpkg here: install what corresponds to these Debian packages yourself: $*"
    return 0
  }
  python3 -m pip --version >/dev/null 2>&1 || set -- "$@" python3-venv
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "Packages are missing, and installing them needs rights this user does not have. Run this, then try again:"
      say "  sudo apt-get install -y --no-install-recommends ${missing[*]}"
      exit 1
    fi
  fi
  say "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}" >&2 ||
    die "could not install packages; run: apt-get install -y --no-install-recommends ${missing[*]}"
}
