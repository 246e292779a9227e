// Options that several commands share, named as llama.cpp's users know them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "razorkv/model.h"
#include "razorkv/policy.h"
#include "razorkv/sampling.h"
#include "razorkv/session.h"

namespace razorkv::cli {

struct ModelArguments {
  std::string path;
  bool no_mmap = false;
  bool no_repack = false;

  void add_path(CLI::App& command);
  void add(CLI::App& command);
  Model load() const;
};

struct SessionArguments {
  std::int64_t context = 0;
  int threads = 0;
  int threads_batch = 0;
  std::int64_t batch = 2048;
  std::int64_t micro_batch = 512;
  std::string key_type;
  std::string value_type;

  void add(CLI::App& command);
  /// Throws InvalidArgument.
  SessionOptions options() const;
};

struct PolicyArguments {
  PolicyOptions options;
  std::string prefill = "exact";
  std::int64_t kv_budget_mb = 0;

  void add(CLI::App& command);
  /// Whether the user named any part of a policy.
  bool given() const;
  /// A policy for a context of at most `tokens` tokens. Where nothing would be dropped within them, the full policy,
  /// which then gives the same and needs no head profile. Shows the making of a profile on the terminal.
  Policy make(const Model& model, const SessionOptions& session, std::int64_t tokens) const;

 private:
  std::vector<const CLI::Option*> added_;
};

struct SamplingArguments {
  SamplingParams params;
  std::int64_t seed = -1;
  std::string grammar_file;
  std::vector<std::string> stops;
  std::int64_t count = -1;  ///< tokens to generate; -1 = until the model or the context ends it

  void add(CLI::App& command);
  /// Throws InvalidArgument, FileError.
  SamplingParams resolved() const;
};

}  // namespace razorkv::cli
