"""clang-tidy over src/, remembering by content which files passed.

Arguments: repository root, build folder with compile_commands.json, parallel jobs, cache folder. A file is checked again when its
preprocessed text (with comments, for NOLINT), the configuration or the version of clang-tidy changed.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys

root, build, jobs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
passed = pathlib.Path(sys.argv[4]) / "tidy"
passed.mkdir(parents=True, exist_ok=True)
common = (root / ".clang-tidy").read_bytes() + subprocess.check_output(["clang-tidy", "--version"])


def preprocessed(entry):
    command = shlex.split(entry["command"])
    while not command[0].endswith("clang++"):  # a launcher such as ccache
        command.pop(0)
    output = command.index("-o")
    del command[output : output + 2]
    text = subprocess.run(
        command + ["-E", "-C"], cwd=entry["directory"], check=True, stdout=subprocess.PIPE
    ).stdout
    return text.replace(str(root).encode(), b".")  # what passed in one checkout has passed in another


def check(entry):
    """Returns (file, output); the output is None for a file that passed before and empty for one that passes now."""
    mark = passed / hashlib.sha256(common + preprocessed(entry)).hexdigest()
    if mark.exists():
        return entry["file"], None
    result = subprocess.run(
        ["clang-tidy", "--quiet", "-p", str(build), entry["file"]], capture_output=True, text=True
    )
    if result.returncode != 0:
        return entry["file"], result.stdout + result.stderr
    mark.touch()
    return entry["file"], ""


entries = json.loads((build / "compile_commands.json").read_text())
chosen = list({e["file"]: e for e in entries if pathlib.Path(e["file"]).is_relative_to(root / "src")}.values())
if not chosen:
    sys.exit("error: no file of src/ in " + str(build / "compile_commands.json"))
with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    results = list(pool.map(check, chosen))
failures = [output for _, output in results if output]
print("\n".join(failures), end="")
print(f"{len(chosen)} files, {sum(o is None for _, o in results)} unchanged since they passed, {len(failures)} failed")
sys.exit(bool(failures))
