// A session that has read a document and answers questions about it, each from the same state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_memory.h"
#include "cli/generate.h"
#include "razorkv/session.h"

namespace razorkv::cli {

struct Answer {
  std::string question;
  Generated generated;
  SessionStatistics statistics;  ///< of this answer alone; cache sizes are those at its end
};

class DocumentSession {
 public:
  DocumentSession(const Model& model, const SessionOptions& options, const Policy& policy);

  /// Reads and compresses the document, with a progress bar. Throws as Session::feed().
  void read(const std::vector<Token>& document);
  /// Takes a saved document instead; `any_policy`: under the policy it was saved under, not the session's. Throws as
  /// Session::load().
  void load(const std::string& path, bool any_policy);

  /// Answers from the document's state and goes back to it. Throws as Session::feed(); the state is kept.
  Answer answer(const std::string& question, const std::vector<Token>& tokens, const SamplingParams& params,
                const GenerateOptions& options, const std::function<void(std::string_view)>& show);

  Session& session() { return session_; }
  const SessionStatistics& document() const { return document_; }  ///< when it had been read and compressed
  const ProcessMemory& memory_before() const { return before_; }   ///< of the process, before compression
  const ProcessMemory& memory_after() const { return after_; }

 private:
  void keep();

  Session session_;
  std::optional<Snapshot> start_;
  SessionStatistics document_;
  ProcessMemory before_;
  ProcessMemory after_;
};

}  // namespace razorkv::cli
