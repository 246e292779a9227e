// What the routes work on, once the model is loaded.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "model/chat_template.h"
#include "razorkv/model.h"
#include "server/documents.h"
#include "server/scheduler.h"

namespace razorkv::server {

struct AppSettings {
  std::string model_name;       ///< as clients see it
  std::string document_folder;  ///< empty = documents are lost when the server ends
  std::string slot_folder;      ///< of saved slots; empty = none are saved
  std::string chat_template;    ///< empty = the model's own
  std::chrono::seconds timeout{600};
  std::size_t max_documents = 1024;
};

class App {
 public:
  App(const Model& model, const EngineSettings& engine, const Policy& policy, const SchedulerSettings& scheduling,
      AppSettings app_settings);

  const Vocabulary& vocabulary() const;
  /// Throws UnsupportedModel when the model has no template that is known.
  const ChatTemplate& chat() const;

  const AppSettings settings;
  const std::shared_ptr<const ChatTemplate> chat_template;  ///< null: none
  Scheduler scheduler;
  Documents documents;  ///< holds states of the scheduler's engine
};

}  // namespace razorkv::server
