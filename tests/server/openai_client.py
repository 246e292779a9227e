"""The official openai client against a running server: BASE_URL as the only argument, a chat model behind it."""

import json
import sys
import threading
import time

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0, timeout=120)
MODEL = client.models.list().data[0].id


def ask(**options):
    settings = {"model": MODEL, "temperature": 0, "max_tokens": 16}
    settings["messages"] = [{"role": "user", "content": "Name three colours."}]
    return client.chat.completions.create(**{**settings, **options})


def check_chat():
    answer = ask()
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    again = ask()
    assert again.choices[0].message.content == answer.choices[0].message.content
    assert again.usage.prompt_tokens_details.cached_tokens > 0


def check_streaming():
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == ask().choices[0].message.content
    assert chunks[-1].usage.completion_tokens > 0


def check_schema():
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green"]}, "count": {"type": "integer"}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    }
    reply = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    value = json.loads(ask(response_format=reply, max_tokens=100).choices[0].message.content)
    assert value["colour"] in ("red", "green") and isinstance(value["count"], int)


def check_logprobs():
    content = ask(logprobs=True, top_logprobs=4).choices[0].logprobs.content
    assert content and all(len(token.top_logprobs) == 4 for token in content)
    assert all(token.logprob == token.top_logprobs[0].logprob for token in content)


def check_completions():
    done = client.completions.create(model=MODEL, prompt="One, two, three,", max_tokens=8, temperature=0)
    assert done.choices[0].text and done.usage.completion_tokens <= 8
    two = ask(n=2, temperature=1.0, seed=3)
    assert len(two.choices) == 2


def check_errors():
    for options, kind in (
        ({"temperature": -1}, openai.BadRequestError),
        ({"messages": []}, openai.BadRequestError),
        ({"extra_body": {"document": "doc-none"}}, openai.NotFoundError),
    ):
        try:
            ask(**options)
        except kind as error:
            assert error.body["message"]
        else:
            raise AssertionError(f"{options} was taken")


def check_cancellation():
    stream = ask(stream=True, max_tokens=100000)
    next(iter(stream))
    stream.close()
    begin = time.monotonic()
    ask(max_tokens=1)
    assert time.monotonic() - begin < 60


def check_many_at_once():
    alone = [ask(messages=[{"role": "user", "content": f"Count from {i}."}]).choices[0] for i in range(6)]
    together = [None] * 6

    def one(i):
        together[i] = ask(messages=[{"role": "user", "content": f"Count from {i}."}]).choices[0]

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [c.message.content for c in together] == [c.message.content for c in alone]


def check_document():
    text = "The harbour of Vell lies in the north. " * 40
    made = client.post("/documents", body={"text": text, "name": "vell"}, cast_to=object)
    answer = ask(extra_body={"document": made["id"]}, messages=[{"role": "user", "content": "Where is it?"}])
    assert answer.usage.prompt_tokens_details.cached_tokens >= made["tokens"]
    client.delete(f"/documents/{made['id']}", cast_to=object)


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
        print("passed:", name[len("check_") :], flush=True)
