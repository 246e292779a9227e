#include "support/retrieval_model.h"

#include <gguf.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <stdexcept>

#include "heads/bounded_draw.h"

namespace razorkv::test {
namespace {

constexpr std::int64_t kWidth = 256;  // residual stream
constexpr std::int64_t kHead = 64;
constexpr std::int64_t kBlock = 32;      // residual block
constexpr std::int64_t kLocator = 12;    // pairs 0..11 locate by distance
constexpr std::int64_t kMatchPair = 15;  // pairs 15..30 match codes
constexpr std::int64_t kSinkPair = 31;
constexpr double kRopeBase = 1e14;
constexpr int kLargestOverlap = 14;  // of two codes
constexpr std::int32_t kFirstNeedleId = 64;
constexpr std::int64_t kNeedleTokens = 5;
constexpr std::int32_t kFirstByteId = 256;

std::string byte_name(int byte) {
  constexpr const char* digits = "0123456789ABCDEF";
  return std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">";
}

enum Block : std::int64_t { kConstants, kToken, kPrevious, kAnswer, kScratch4, kScratch5, kScratch6, kScratch7 };

using Code = std::uint32_t;  // bit e set: element e is -1

float element(Code code, std::int64_t e) { return (code >> e) & 1U ? -1.0F : 1.0F; }

std::vector<Code> draw_codes(std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<Code> codes;
  while (codes.size() < static_cast<std::size_t>(kRetrievalVocabulary)) {
    const auto candidate = static_cast<Code>(rng() >> 32);
    const bool fits = std::all_of(codes.begin(), codes.end(), [&](Code code) {
      return std::abs(32 - 2 * std::popcount(code ^ candidate)) <= kLargestOverlap;
    });
    if (fits) codes.push_back(candidate);
  }
  return codes;
}

class Builder {
 public:
  explicit Builder(const RetrievalModelOptions& options)
      : options_(options), codes_(draw_codes(options.seed)), gguf_(shape(options)) {
    gguf_.clear_values();
    embeddings();
    for (std::int64_t layer = 0; layer < 2; ++layer) shared_parts(layer);
    for (std::int64_t head = 0; head < 4; ++head) {
      constexpr std::int64_t offsets[] = {1, 2, 0, 3};
      constexpr Block blocks[] = {kPrevious, kScratch4, kScratch5, kScratch6};
      offset_head(0, head, offsets[head]);
      write_to(0, head, blocks[head]);
    }
    induction_head();
    offset_head(1, 1, 1);
    write_to(1, 1, kScratch4);
    if (options.echo) echo_head();
    write_to(1, 2, options.echo ? kScratch6 : kScratch7);  // without echo: Q = 0, the mean head
    offset_head(1, 3, 2);
    write_to(1, 3, kScratch5);
    add_vocabulary();
  }

  TinyGguf take() { return std::move(gguf_); }

 private:
  static TinyOptions shape(const RetrievalModelOptions& options) {
    TinyOptions o;
    o.architecture = options.layout == RopeKind::adjacent ? "llama" : "qwen2";
    o.qkv_bias = options.layout == RopeKind::halves;  // zeros; qwen2 expects them
    o.embedding = kWidth;
    o.layers = 2;
    o.heads = 4;
    o.kv_heads = 2;
    o.head_width = kHead;
    o.vocabulary = kRetrievalVocabulary;
    o.feed_forward = kBlock;
    o.context = options.context;
    o.rope_base = static_cast<float>(kRopeBase);
    o.weight_type = options.weight_type;
    return o;
  }

  float& weight(std::int64_t layer, const char* name, std::int64_t out, std::int64_t in) {
    TinyTensor& tensor = gguf_.tensor("blk." + std::to_string(layer) + "." + name + ".weight");
    return tensor.values[static_cast<std::size_t>(out * tensor.shape[0] + in)];
  }
  std::int64_t dim(std::int64_t pair, std::int64_t component) const {
    return options_.layout == RopeKind::adjacent ? 2 * pair + component : pair + component * (kHead / 2);
  }
  /// Element e of a code among the 32 dims of the matching pairs.
  std::int64_t match_dim(std::int64_t e) const { return dim(kMatchPair + e / 2, e % 2); }
  static std::int64_t at(Block block, std::int64_t e) { return block * kBlock + e; }

  void embeddings() {
    TinyTensor& embedding = gguf_.tensor("token_embd.weight");
    TinyTensor& output = gguf_.tensor("output.weight");
    for (std::int64_t id = 0; id < kRetrievalVocabulary; ++id) {
      const Code code = codes_[static_cast<std::size_t>(id)];
      float* row = embedding.values.data() + id * kWidth;
      float* out = output.values.data() + id * kWidth;
      row[0] = 1.0F;
      if (id == kRetrievalBos) row[1] = 1.0F;
      for (std::int64_t e = 0; e < kBlock; ++e) {
        row[at(kToken, e)] = element(code, e);
        out[at(kAnswer, e)] = element(code, e);
        out[at(kScratch7, e)] = element(code, e);
      }
    }
    auto fill = [&](const std::string& name, double value) {
      std::vector<float>& values = gguf_.tensor(name).values;
      std::fill(values.begin(), values.end(), static_cast<float>(value));
    };
    // Squared norm of the residual: 1 + 32 per code it holds. With these weights the norm leaves it as it is.
    fill("blk.0.attn_norm.weight", std::sqrt(33.0 / 256.0));
    fill("blk.1.attn_norm.weight", std::sqrt(161.0 / 256.0));
    fill("output_norm.weight", 1.0);
  }

  /// Of both KV heads: a constant key vector to locate by distance, and the token as value.
  void shared_parts(std::int64_t layer) {
    for (std::int64_t kv_head = 0; kv_head < 2; ++kv_head) {
      for (std::int64_t pair = 0; pair < kLocator; ++pair)
        weight(layer, "attn_k", kv_head * kHead + dim(pair, 0), 0) = 1;
      for (std::int64_t e = 0; e < kBlock; ++e) weight(layer, "attn_v", kv_head * kHead + e, at(kToken, e)) = 1;
    }
  }

  void write_to(std::int64_t layer, std::int64_t head, Block block) {
    for (std::int64_t e = 0; e < kBlock; ++e) weight(layer, "attn_output", at(block, e), head * kHead + e) = 1;
  }

  void offset_head(std::int64_t layer, std::int64_t head, std::int64_t offset) {
    for (std::int64_t pair = 0; pair < kLocator; ++pair) {
      const double angle =
          static_cast<double>(offset) * std::pow(kRopeBase, -static_cast<double>(pair) / (kHead / 2.0));
      weight(layer, "attn_q", head * kHead + dim(pair, 0), 0) = static_cast<float>(256.0 * std::cos(angle));
      weight(layer, "attn_q", head * kHead + dim(pair, 1), 0) = static_cast<float>(-256.0 * std::sin(angle));
    }
  }

  void induction_head() {
    const Code bos = codes_[kRetrievalBos];
    for (std::int64_t e = 0; e < kBlock; ++e) {
      weight(1, "attn_q", match_dim(e), at(kToken, e)) = 20;
      weight(1, "attn_k", match_dim(e), at(kPrevious, e)) = 1;
      weight(1, "attn_k", match_dim(e), 1) = -element(bos, e);
    }
    weight(1, "attn_q", dim(kSinkPair, 0), 0) = 480;
    weight(1, "attn_k", dim(kSinkPair, 0), 1) = 1;
    write_to(1, 0, kAnswer);
  }

  void echo_head() {
    for (std::int64_t e = 0; e < kBlock; ++e) {
      weight(1, "attn_q", 2 * kHead + match_dim(e), at(kToken, e)) = 20;
      weight(1, "attn_k", kHead + match_dim(e), at(kToken, e)) = 1;
    }
  }

  void add_vocabulary() {
    gguf_.edit_metadata([](gguf_context* gguf) {
      std::vector<std::string> words{"<s>"};
      for (std::int32_t id = 1; id < kFirstByteId; ++id) words.push_back("w" + std::to_string(id));
      for (int byte = 0; byte < 256; ++byte) words.push_back(byte_name(byte));
      std::vector<const char*> texts;
      for (const std::string& word : words) texts.push_back(word.c_str());
      const std::vector<float> scores(words.size(), 0.0F);
      std::vector<std::int32_t> types(words.size(), 1);         // normal
      types[kRetrievalBos] = 3;                                 // control
      std::fill(types.begin() + kFirstByteId, types.end(), 6);  // byte; libllama needs all 256 of them
      gguf_set_val_str(gguf, "tokenizer.ggml.model", "llama");
      gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", texts.data(), texts.size());
      gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
      gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
      for (const char* special : {"bos", "eos", "unknown"}) {
        gguf_set_val_u32(gguf, ("tokenizer.ggml." + std::string(special) + "_token_id").c_str(), kRetrievalBos);
      }
      gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", true);
    });
  }

  RetrievalModelOptions options_;
  std::vector<Code> codes_;
  TinyGguf gguf_;
};

}  // namespace

TinyGguf retrieval_model(const RetrievalModelOptions& options) { return Builder(options).take(); }

RetrievalTask retrieval_task(std::int64_t length, std::int64_t needles, std::uint64_t seed) {
  // A context of fillers and needles in random order: which of these units are needles.
  std::mt19937_64 rng(seed);
  std::vector<std::int64_t> units(static_cast<std::size_t>(length - 1 - needles * (kNeedleTokens - 1)));
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = static_cast<std::int64_t>(i);
  draw_to_front(rng, units, static_cast<std::size_t>(needles));
  units.resize(static_cast<std::size_t>(needles));
  std::sort(units.begin(), units.end());
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < units.size(); ++i) {
    positions.push_back(1 + units[i] + static_cast<std::int64_t>(i) * (kNeedleTokens - 1));
  }
  return retrieval_task_at(length, positions, rng());
}

RetrievalTask retrieval_task_at(std::int64_t length, const std::vector<std::int64_t>& positions, std::uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<std::int32_t> ids;
  for (std::int32_t id = kFirstNeedleId; id < kRetrievalVocabulary; ++id) ids.push_back(id);
  const std::size_t used = positions.size() * static_cast<std::size_t>(kNeedleTokens);
  if (used > ids.size()) throw std::invalid_argument("retrieval task: at most 89 needles");
  draw_to_front(rng, ids, ids.size());

  RetrievalTask task;
  task.context.push_back(kRetrievalBos);
  const auto fill_to = [&](std::int64_t end) {
    while (static_cast<std::int64_t>(task.context.size()) < end) {
      task.context.push_back(static_cast<std::int32_t>(1 + bounded_draw(rng, kFirstNeedleId - 1)));
    }
  };
  auto next = ids.begin();
  for (const std::int64_t position : positions) {
    if (position < static_cast<std::int64_t>(task.context.size()) || position + kNeedleTokens > length) {
      throw std::invalid_argument("retrieval task: needles must not overlap each other, BOS or the end");
    }
    fill_to(position);
    task.needles.push_back({position, {next, next + kNeedleTokens}});
    next += kNeedleTokens;
    task.context.insert(task.context.end(), task.needles.back().tokens.begin(), task.needles.back().tokens.end());
  }
  fill_to(length);
  task.absent_keys.assign(next, ids.end());
  return task;
}

}  // namespace razorkv::test
