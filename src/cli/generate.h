// Generating text from a session whose prompt has been fed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "razorkv/sampling.h"
#include "razorkv/session.h"

namespace razorkv::cli {

enum class FinishReason : std::uint8_t {
  end_of_generation,  ///< the model ended its answer
  stop_string,
  count,  ///< as many tokens as were asked for
  context_full,
  interrupted
};

/// "stop", "stop_string", "length", "context_full", "interrupted".
const char* finish_reason_name(FinishReason reason);

struct Generated {
  std::string text;           ///< all that was shown
  std::vector<Token> tokens;  ///< chosen, without the end-of-generation token
  FinishReason reason = FinishReason::count;
  /// The last token, where it is part of the text but was not fed any more.
  std::optional<Token> pending;
};

struct GenerateOptions {
  std::int64_t count = -1;  ///< tokens at most; -1 = no limit but the context
  std::vector<std::string> stops;
  std::function<void(Session&)> before_feeding;  ///< called before every token that is fed; may be empty
};

/// Chooses, shows and feeds tokens until the first of the reasons; sets the reason context_full when the context has no
/// room for another token, and interrupted after an interrupt (interrupt.h). The interrupt stays set.
Generated generate(Session& session, TokenSampler& sampler, const GenerateOptions& options,
                   const std::function<void(std::string_view)>& show);

/// Feeds a prompt with a progress bar. Throws as Session::feed().
void feed_prompt(Session& session, const std::vector<Token>& tokens);

}  // namespace razorkv::cli
