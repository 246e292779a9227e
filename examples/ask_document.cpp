// Reads a document once, compresses it, and answers questions about it from the compressed cache.
//   ask_document MODEL.gguf DOCUMENT.txt QUESTION...
#include <razorkv/razorkv.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s MODEL.gguf DOCUMENT.txt QUESTION...\n", argv[0]);
    return 1;
  }
  std::ifstream file(argv[2]);
  if (!file) throw razorkv::FileError(std::string("cannot read ") + argv[2]);
  const std::string document(std::istreambuf_iterator<char>(file), {});

  const razorkv::Model model = razorkv::Model::load(argv[1]);
  razorkv::PolicyOptions policy;
  policy.window = 512;  // rows; more are dropped from short documents than with the default of 4000
  razorkv::Session session(model, {}, razorkv::Policy::make(model, policy));

  session.feed(model.tokenize(document + "\n\n"));
  session.compress();
  const razorkv::Snapshot read = session.snapshot();
  const razorkv::SessionStatistics memory = session.statistics();
  std::printf("%lld tokens in %zu KiB of KV cache, %zu KiB uncompressed\n", static_cast<long long>(memory.tokens),
              memory.kv_bytes / 1024, memory.kv_uncompressed_bytes / 1024);

  razorkv::SamplingParams greedy;
  greedy.temperature = 0.0F;
  for (int i = 3; i < argc; ++i) {
    session.restore(read);
    session.feed(model.tokenize(std::string("Question: ") + argv[i] + "\nAnswer:", false));
    razorkv::TokenSampler sampler(model, greedy);
    std::vector<razorkv::Token> answer;
    while (answer.size() < 64) {
      const razorkv::Token token = sampler.sample(session.logits());
      if (model.ends_generation(token)) break;
      answer.push_back(token);
      session.feed({&token, 1});
    }
    std::printf("%s\n %s\n", argv[i], model.detokenize(answer).c_str());
  }
  return 0;
} catch (const razorkv::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
