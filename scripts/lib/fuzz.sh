# Running the libFuzzer targets. To be sourced after common.sh and build.sh.

# run_fuzzers SECONDS: every target for that long, JOBS at a time. Inputs found are kept in build/fuzz/corpus; a crashing
# input lies in build/fuzz and fails the step.
run_fuzzers() {
  local seconds=$1 names
  names=$(find "$ROOT/tests/fuzz" -name '*_fuzz.cpp' -printf '%f\n' | sed 's/\.cpp$//' | sort)
  [ -n "$names" ] || die "no fuzz targets in tests/fuzz"
  export BUILD ROOT
  # shellcheck disable=SC2016  # expanded by the inner shell
  printf '%s\n' "$names" | xargs -P "$JOBS" -I NAME bash -c '
    work=$BUILD/fuzz/corpus/NAME seeds=$ROOT/tests/fuzz/corpus/NAME
    mkdir -p "$work"
    [ -d "$seeds" ] || seeds=
    "$BUILD/fuzz/tests/fuzz/NAME" -max_total_time='"$seconds"' -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 \
      -artifact_prefix="$BUILD/fuzz/" "$work" $seeds >"$BUILD/fuzz/NAME.log" 2>&1
    rc=$?
    if [ $rc -eq 0 ]; then
      echo "NAME: $(sed -n "s/^stat::number_of_executed_units: *//p" "$BUILD/fuzz/NAME.log") inputs, no failure"
    else
      tail -n 40 "$BUILD/fuzz/NAME.log"
    fi
    exit $rc'
}
