// Documents that were read once and answer many questions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "model/chat_template.h"
#include "server/scheduler.h"

namespace razorkv::server {

struct DocumentInfo {
  std::string id;  ///< "doc-" and 24 hexadecimal digits
  std::string name;
  std::int64_t created = 0;  ///< Unix time
  std::int64_t tokens = 0;
  std::size_t kv_bytes = 0;
  std::size_t uncompressed_bytes = 0;
  bool compressed = false;
  bool saved = false;   ///< outlives the server
  bool loaded = false;  ///< its state is in memory
};

/// All functions may be called from any thread.
class Documents {
 public:
  /// `folder`: where states are kept; empty = in memory only. Created when missing; documents that lie there are known
  /// at once and loaded when first used. Throws FileError when it cannot be read.
  Documents(Scheduler& scheduler, std::shared_ptr<const ChatTemplate> chat, std::string folder);

  static std::string new_id();
  /// Tokens of the text as the beginning of a user's message. Throws InvalidArgument when it is blank.
  std::vector<Token> prompt(const std::string& text, const std::string& system) const;
  /// Tokens behind the document: the questions and answers of a conversation that begins with a question. Throws
  /// InvalidArgument for another order of roles and a template that cannot go on from a document.
  std::vector<Token> questions(std::span<const ChatMessage> messages) const;

  /// Makes a document that was read known, and saves it where there is a folder. Throws FileError; then it is not kept.
  DocumentInfo add(const std::string& id, const std::string& name, std::shared_ptr<const Checkpoint> state);
  std::vector<DocumentInfo> list() const;
  /// Throws ApiError (404).
  DocumentInfo info(const std::string& id) const;
  /// Its state, from disk when it is not in memory. Throws ApiError (404), FileError, OutOfBudget, OutOfMemory.
  std::shared_ptr<const Checkpoint> open(const std::string& id);
  /// Throws ApiError (404).
  void remove(const std::string& id);

 private:
  struct Entry {
    DocumentInfo info;
    std::shared_ptr<const Checkpoint> state;
    std::uint64_t used = 0;
  };
  Entry& at(const std::string& id);
  const Entry& at(const std::string& id) const;
  std::string path(const std::string& id, const char* ending) const;
  void save(const Entry& entry) const;
  void read_folder();
  /// Lets go of the states of saved documents, the least recently used first, until the rest fits the cache.
  void unload_others(const std::string& keep);

  Scheduler& scheduler_;
  std::shared_ptr<const ChatTemplate> chat_;
  std::string folder_;
  mutable std::mutex mutex_;
  std::mutex loading_;
  std::map<std::string, Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace razorkv::server
