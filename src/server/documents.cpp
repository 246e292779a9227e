#include "server/documents.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/json_fields.h"
#include "engine/model_handle.h"
#include "server/api_error.h"
#include "server/checkpoint_file.h"
#include "server/completion_response.h"

namespace razorkv::server {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderVersion = 1;
constexpr std::size_t kLargestFacts = 1U << 20U;
constexpr const char* kBetween = "\n\n";  // document and question

bool is_id(const std::string& text) {
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == 28 && text.starts_with("doc-") && std::all_of(text.begin() + 4, text.end(), digit);
}

nlohmann::json facts(const DocumentInfo& info) {
  return {{"version", kFolderVersion},
          {"id", info.id},
          {"name", info.name},
          {"created", info.created},
          {"tokens", info.tokens},
          {"kv_bytes", info.kv_bytes},
          {"uncompressed_bytes", info.uncompressed_bytes},
          {"compressed", info.compressed}};
}

DocumentInfo read_facts(const std::string& path) {
  const nlohmann::json value = parse_json(read_whole_file(path, kLargestFacts), path);
  const JsonField field(value, path);
  field["version"].integer(kFolderVersion, kFolderVersion);
  DocumentInfo info;
  info.id = field["id"].string();
  info.name = field["name"].string();
  info.created = field["created"].integer(0, INT64_MAX);
  info.tokens = field["tokens"].integer(1, INT64_MAX);
  info.kv_bytes = static_cast<std::size_t>(field["kv_bytes"].integer(0, INT64_MAX));
  info.uncompressed_bytes = static_cast<std::size_t>(field["uncompressed_bytes"].integer(0, INT64_MAX));
  info.compressed = field["compressed"].boolean();
  info.saved = true;
  return info;
}

}  // namespace

Documents::Documents(Scheduler& scheduler, std::shared_ptr<const ChatTemplate> chat, std::string folder)
    : scheduler_(scheduler), chat_(std::move(chat)), folder_(std::move(folder)) {
  if (!folder_.empty()) read_folder();
}

std::string Documents::new_id() { return "doc-" + random_id(); }

void Documents::read_folder() try {
  fs::create_directories(folder_);
  std::vector<fs::path> unfinished;  // of a server that was killed while it saved
  for (const fs::directory_entry& file : fs::directory_iterator(folder_)) {
    const std::string id = file.path().stem();
    const bool part = file.path().extension() == ".tmp" && is_id(file.path().filename().string().substr(0, 28));
    const bool orphan = file.path().extension() == ".state" && is_id(id) && !fs::exists(path(id, ".json"));
    if (part || orphan) unfinished.push_back(file.path());
    if (file.path().extension() != ".json" || !is_id(id)) continue;
    try {
      DocumentInfo info = read_facts(file.path());
      if (info.id != id) throw FileError(file.path().string() + ": belongs to another document, " + info.id);
      entries_[id].info = std::move(info);
    } catch (const FileError& error) {
      spdlog::error("a saved document is passed over: {}", error.what());
    }
  }
  for (const fs::path& file : unfinished) fs::remove(file);
} catch (const fs::filesystem_error& error) {
  throw FileError(std::string("the folder of documents cannot be used: ") + error.what());
}

std::vector<Token> Documents::prompt(const std::string& text, const std::string& system) const {
  if (!chat_) throw UnsupportedModel("documents need a model with a chat template (--chat-template chooses one)");
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", text});
  return chat_->render_parts(messages, "\n\nx").head;
}

std::vector<Token> Documents::questions(std::span<const ChatMessage> messages) const {
  if (!chat_) throw UnsupportedModel("documents need a model with a chat template (--chat-template chooses one)");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const char* expected = i % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != expected) {
      throw InvalidArgument("messages[" + std::to_string(i) + "].role: expected " + expected + ", found " +
                            messages[i].role +
                            "; with a document, questions and answers alternate (a system message "
                            "is given when the document is made)");
    }
  }
  if (messages.size() % 2 == 0) throw InvalidArgument("messages: the last one must be a question of the user");
  const std::vector<ChatMessage> stub = {{"user", "x"}};
  std::vector<Token> out = chat_->render_parts(stub, kBetween + messages.front().content).tail;
  std::vector<ChatMessage> turns = {{"user", std::string("x") + kBetween + messages.front().content}};
  for (std::size_t i = 1; i + 1 < messages.size(); i += 2) {
    turns.push_back(messages[i]);
    turns.push_back(messages[i + 1]);
    const std::vector<Token> answer = scheduler_.model().tokenize(messages[i].content, false, false);
    const auto more = chat_->continuation(turns);
    if (!more) throw InvalidArgument("the model's chat template cannot go on from a document with earlier answers");
    out.insert(out.end(), answer.begin(), answer.end());
    out.insert(out.end(), more->begin(), more->end());
  }
  return out;
}

std::string Documents::path(const std::string& id, const char* ending) const { return folder_ + "/" + id + ending; }

void Documents::save(const Entry& entry) const {
  write_checkpoint(path(entry.info.id, ".state"), *entry.state, scheduler_.policy());
  try {
    write_file_atomically(path(entry.info.id, ".json"), to_text(facts(entry.info)));
  } catch (...) {
    std::error_code ignored;
    fs::remove(path(entry.info.id, ".state"), ignored);
    throw;
  }
}

DocumentInfo Documents::add(const std::string& id, const std::string& name, std::shared_ptr<const Checkpoint> state) {
  const KvUsage usage = state->sequence.usage();
  Entry entry;
  entry.info = {id,
                name,
                static_cast<std::int64_t>(std::time(nullptr)),
                usage.tokens,
                usage.allocated_bytes,
                usage.uncompressed_bytes,
                state->sequence.compressed(),
                !folder_.empty(),
                true};
  entry.state = std::move(state);
  if (!folder_.empty()) save(entry);
  DocumentInfo info = entry.info;
  {
    const std::scoped_lock lock(mutex_);
    entry.used = ++clock_;
    entries_[id] = std::move(entry);
  }
  unload_others(id);
  return info;
}

std::vector<DocumentInfo> Documents::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<DocumentInfo> out;
  for (const auto& [id, entry] : entries_) {
    out.push_back(entry.info);
    out.back().loaded = entry.state != nullptr;
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.created < b.created; });
  return out;
}

const Documents::Entry& Documents::at(const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end()) throw ApiError(404, "there is no document with this id", "document", "not_found");
  return found->second;
}

Documents::Entry& Documents::at(const std::string& id) { return const_cast<Entry&>(std::as_const(*this).at(id)); }

DocumentInfo Documents::info(const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  const Entry& entry = at(id);
  DocumentInfo out = entry.info;
  out.loaded = entry.state != nullptr;
  return out;
}

std::shared_ptr<const Checkpoint> Documents::open(const std::string& id) {
  const auto loaded = [&]() -> std::shared_ptr<const Checkpoint> {
    const std::scoped_lock lock(mutex_);
    Entry& entry = at(id);
    entry.used = ++clock_;
    return entry.state;
  };
  if (auto state = loaded()) return state;
  const std::scoped_lock one_at_a_time(loading_);
  if (auto state = loaded()) return state;
  std::shared_ptr<const Checkpoint> state;
  scheduler_.on_engine([&](const std::shared_ptr<Engine>& engine) {
    state =
        std::make_shared<const Checkpoint>(read_checkpoint(path(id, ".state"), engine, scheduler_.policy(), id, true));
  });
  {
    const std::scoped_lock lock(mutex_);
    at(id).state = state;
  }
  unload_others(id);
  return state;
}

void Documents::unload_others(const std::string& keep) {
  const std::scoped_lock lock(mutex_);
  for (;;) {
    std::size_t bytes = 0;
    Entry* oldest = nullptr;
    for (auto& [id, entry] : entries_) {
      if (!entry.state) continue;
      bytes += entry.info.kv_bytes;
      if (id != keep && entry.info.saved && (oldest == nullptr || entry.used < oldest->used)) oldest = &entry;
    }
    if (bytes <= scheduler_.settings().cache_bytes || oldest == nullptr) return;
    oldest->state.reset();
  }
}

void Documents::remove(const std::string& id) {
  {
    const std::scoped_lock lock(mutex_);
    at(id);
    entries_.erase(id);
    if (!folder_.empty()) {
      std::error_code ignored;
      fs::remove(path(id, ".json"), ignored);
      fs::remove(path(id, ".state"), ignored);
    }
  }
  scheduler_.forget(id);
}

}  // namespace razorkv::server
