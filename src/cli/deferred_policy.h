// A policy whose head profile is made only when rows are about to be dropped.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/common_options.h"

namespace razorkv::cli {

/// For razor with heads chosen by scores and exact prefill, a session starts under the full policy, which is the same
/// until sinks + window + 1 tokens are held, and changes over before it outgrows them. Other policies are made at once.
class DeferredPolicy {
 public:
  /// `tokens`: most that the context will hold. The references must outlive it. Throws as PolicyArguments::make().
  DeferredPolicy(const PolicyArguments& arguments, const Model& model, const SessionOptions& session,
                 std::int64_t tokens);

  /// What a session has to be opened under.
  const Policy& initial() const { return initial_; }
  /// To be called before `more` tokens are fed. Throws as PolicyArguments::make(); the session is unchanged then.
  void before_feeding(Session& session, std::int64_t more);
  /// Ends the prompt, unless the session is still small enough to change over later.
  void end_prompt(Session& session) const;

 private:
  bool pending(const Session& session) const;

  const PolicyArguments& arguments_;
  const Model& model_;
  SessionOptions session_;
  std::int64_t tokens_;
  bool deferred_;
  Policy initial_;
  std::optional<Policy> made_;
};

}  // namespace razorkv::cli
