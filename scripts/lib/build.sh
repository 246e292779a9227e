# Configuring, building and testing one preset. To be sourced after common.sh.

# configure PRESET PREFIX: PREFIX is the folder of llama.cpp.
configure() {
  mkdir -p "$BUILD/$1"
  (cd "$ROOT" && cmake --preset "$1" -DCMAKE_PREFIX_PATH="$2" >"$BUILD/$1/configure.log" 2>&1) || {
    cat "$BUILD/$1/configure.log" >&2
    return 1
  }
}

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  cmake --build "$BUILD/$preset" -j "$JOBS" --target "$@" -- --quiet
}

# run_tests PRESET CTEST-ARGUMENTS...: keeps what it printed in ctest.log for print_summary.
run_tests() {
  local preset=$1
  shift
  ctest --test-dir "$BUILD/$preset" --output-on-failure --no-tests=error -j "$JOBS" "$@" | tee "$BUILD/$preset/ctest.log"
}

# print_summary PRESET: the last lines of the run, from ctest's count of passed and failed tests on.
print_summary() {
  printf '\n== summary of %s\n' "$1"
  sed -n '/tests passed/,$p' "$BUILD/$1/ctest.log"
}
