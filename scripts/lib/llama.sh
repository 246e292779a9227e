# llama.cpp (libllama and ggml) as static libraries, built once per machine and compiler. To be sourced after common.sh.
LLAMA_PACKAGE=llama-cpp-python
LLAMA_PACKAGE_VERSION=0.3.36
LLAMA_SHA256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
LLAMA_FLAGS=(-DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DGGML_NATIVE=ON -DGGML_OPENMP=OFF
  -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF
  -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF)
LLAMA_RELEASE_FLAGS=(-DCMAKE_BUILD_TYPE=Release)
# ThreadSanitizer must see the barriers between ggml's threads, or it takes every custom operation for a race.
LLAMA_TSAN_FLAGS=(-DCMAKE_BUILD_TYPE=None -DGGML_SANITIZE_THREAD=ON "-DCMAKE_C_FLAGS=-fsanitize=thread -O2 -g1"
  "-DCMAKE_CXX_FLAGS=-fsanitize=thread -O2 -g1")

# ensure_llama release|tsan: sets LLAMA_PREFIX, the folder for CMAKE_PREFIX_PATH, building it when it is not there.
ensure_llama() {
  local variant=$1 key
  if [ "$variant" = release ] && [ -n "${RAZORKV_LLAMA_PREFIX:-}" ]; then
    [ -n "$(find "$RAZORKV_LLAMA_PREFIX"/ -name llama-config.cmake -print -quit)" ] ||
      die "RAZORKV_LLAMA_PREFIX=$RAZORKV_LLAMA_PREFIX holds no llama-config.cmake; give the folder llama.cpp was installed to"
    LLAMA_PREFIX=$RAZORKV_LLAMA_PREFIX
    return 0
  fi
  local flags=("${LLAMA_FLAGS[@]}" "${LLAMA_RELEASE_FLAGS[@]}")
  [ "$variant" = release ] || flags=("${LLAMA_FLAGS[@]}" "${LLAMA_TSAN_FLAGS[@]}")
  key=$(llama_key "${flags[@]}")
  LLAMA_PREFIX=$CACHE/deps/llama-$key
  [ -e "$LLAMA_PREFIX/lib/cmake/llama/llama-config.cmake" ] && return 0
  mkdir -p "$CACHE/deps"
  exec 9>"$CACHE/deps/.llama-$key.lock"
  flock -n 9 || {
    say "waiting for another run that builds llama.cpp"
    flock 9
  }
  [ -e "$LLAMA_PREFIX/lib/cmake/llama/llama-config.cmake" ] || build_llama "$variant" "${flags[@]}"
  exec 9>&-
}

# The libraries are built for this processor, so its features belong to the name as much as the compiler does.
llama_key() {
  {
    printf '%s\n' "$LLAMA_SHA256" "$@"
    gcc -v 2>&1 | grep -E '^(Target|gcc version)'
    grep -m1 -E '^(flags|Features)' /proc/cpuinfo || uname -m
  } | sha256sum | cut -c1-16
}

build_llama() {
  local variant=$1 scratch source launcher=() start=$SECONDS
  shift
  say "building llama.cpp ($variant) into $LLAMA_PREFIX: about 2 minutes on 2 cores, once"
  new_scratch
  scratch=$REPLY
  pip_download "$scratch" --no-binary :all: "$LLAMA_PACKAGE==$LLAMA_PACKAGE_VERSION"
  source=$(find "$scratch" -maxdepth 1 -name '*.tar.gz')
  check_sha256 "$source" "$LLAMA_SHA256"
  tar -xzf "$source" -C "$scratch"
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  (
    cmake -G Ninja -S "${source%.tar.gz}/vendor/llama.cpp" -B "$scratch/build" -DCMAKE_C_COMPILER=gcc \
      -DCMAKE_CXX_COMPILER=g++ -DCMAKE_INSTALL_PREFIX="$LLAMA_PREFIX" "${launcher[@]}" "$@" &&
      cmake --build "$scratch/build" -j "$JOBS" &&
      cmake --install "$scratch/build" --prefix "$scratch/prefix"
  ) >"$scratch/log" 2>&1 || {
    tail -n 30 "$scratch/log" >&2
    die "llama.cpp did not build; the last lines of its log are above"
  }
  mv -T "$scratch/prefix" "$LLAMA_PREFIX"
  rm -rf "$scratch"
  say "llama.cpp ($variant) built in $((SECONDS - start)) s"
}
