"""Eight clients with ten requests each against a server: BASE_URL as the only argument, a chat model behind it.

Every greedy answer must equal the one that its request got alone. Prints tokens/s and times to the first token."""

import json
import statistics
import sys
import threading
import time
import urllib.request

URL = sys.argv[1]
CLIENTS, REQUESTS, TOKENS = 8, 10, 12
prompts = [f"Client {i} counts boats. " * (1 + 3 * i) + "How many?" for i in range(CLIENTS)]


def ask(prompt, tokens=TOKENS, reuse=False):
    """The text, the number of tokens and the seconds to the first one."""
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": tokens,
        "cache_prompt": reuse,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    request = urllib.request.Request(
        URL + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    begin = time.monotonic()
    first, text, count = None, "", 0
    with urllib.request.urlopen(request, timeout=600) as answer:
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            assert "error" not in event, event
            if event["choices"] and event["choices"][0]["delta"].get("content"):
                first = first or time.monotonic() - begin
                text += event["choices"][0]["delta"]["content"]
            count = event.get("usage", {}).get("completion_tokens", count)
    return text, count, first or time.monotonic() - begin


def run(name, reader=False):
    waits, wrong, total, lock = [], [], 0, threading.Lock()

    def client(i):
        nonlocal total
        for round_ in range(REQUESTS):
            text, count, first = ask(prompts[(i + round_) % CLIENTS], reuse=round_ % 2 == 1)
            with lock:
                total += count
                waits.append(first)
                if text != alone[(i + round_) % CLIENTS]:
                    wrong.append((i, round_, text))

    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    if reader:
        threads.append(threading.Thread(target=ask, args=("Boats lie in the harbour. " * 500, 1)))
        threads[-1].start()
    begin = time.monotonic()
    for thread in threads[:CLIENTS]:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    waits.sort()
    print(
        f"{name}: {len(waits)} answers, {total / seconds:.1f} tokens/s, first token p50 "
        f"{statistics.median(waits):.2f} s, p95 {waits[int(0.95 * len(waits))]:.2f} s, different {len(wrong)}",
        flush=True,
    )
    assert not wrong, wrong[:3]


begin = time.monotonic()
results = [ask(prompt) for prompt in prompts]
alone = [text for text, _, _ in results]
tokens = sum(count for _, count, _ in results)
print(f"one client: {tokens / (time.monotonic() - begin):.1f} tokens/s", flush=True)
run("eight clients")
run("eight clients while a prompt of about 3,000 tokens is read", reader=True)
