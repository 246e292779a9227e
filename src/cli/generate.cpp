#include "cli/generate.h"

#include <array>

#include "cli/interrupt.h"
#include "cli/progress_bar.h"
#include "engine/model_handle.h"
#include "engine/text_stream.h"
#include "razorkv/error.h"

namespace razorkv::cli {

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::end_of_generation:
      return "stop";
    case FinishReason::stop_string:
      return "stop_string";
    case FinishReason::count:
      return "length";
    case FinishReason::context_full:
      return "context_full";
    case FinishReason::interrupted:
      return "interrupted";
  }
  return "";
}

Generated generate(Session& session, TokenSampler& sampler, const GenerateOptions& options,
                   const std::function<void(std::string_view)>& show) {
  Generated out;
  TextStream stream(options.stops);
  const auto give = [&](const std::string& text) {
    if (text.empty()) return;
    out.text += text;
    show(text);
  };
  const auto finish = [&](FinishReason reason) {
    out.reason = reason;
    give(stream.finish());
  };
  for (;;) {
    if (options.count >= 0 && static_cast<std::int64_t>(out.tokens.size()) >= options.count) {
      finish(FinishReason::count);
      return out;
    }
    if (InterruptScope::requested()) {
      finish(FinishReason::interrupted);
      return out;
    }
    if (out.pending) {
      try {
        if (options.before_feeding) options.before_feeding(session);
        session.feed(std::array<Token, 1>{*out.pending});
      } catch (const Cancelled&) {
        finish(FinishReason::interrupted);
        return out;
      } catch (const ContextFull&) {
        finish(FinishReason::context_full);
        return out;
      }
      out.pending.reset();
    }
    const Token token = sampler.sample(session.logits());
    if (session.model().ends_generation(token)) {
      finish(FinishReason::end_of_generation);
      return out;
    }
    out.tokens.push_back(token);
    out.pending = token;
    give(stream.push(session.model().impl()->vocabulary->piece(token)));
    if (stream.stopped()) {
      out.reason = FinishReason::stop_string;
      return out;
    }
  }
}

void feed_prompt(Session& session, const std::vector<Token>& tokens) {
  ProgressBar bar("prompt");
  session.feed(tokens, bar.progress());
}

}  // namespace razorkv::cli
