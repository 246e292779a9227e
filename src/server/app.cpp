#include "server/app.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "engine/model_handle.h"
#include "razorkv/error.h"

namespace razorkv::server {
namespace {

std::shared_ptr<const ChatTemplate> find_template(const Model& model, const std::string& name) {
  try {
    return std::make_shared<const ChatTemplate>(model.impl()->vocabulary, name);
  } catch (const UnsupportedModel& error) {
    spdlog::warn("no chat: {}", error.what());
    return nullptr;
  }
}

}  // namespace

App::App(const Model& model, const EngineSettings& engine, const Policy& policy, const SchedulerSettings& scheduling,
         AppSettings app_settings)
    : settings(std::move(app_settings)),
      chat_template(find_template(model, settings.chat_template)),
      scheduler(model, engine, policy, scheduling),
      documents(scheduler, chat_template, settings.document_folder) {}

const Vocabulary& App::vocabulary() const { return *scheduler.model().impl()->vocabulary; }

const ChatTemplate& App::chat() const {
  if (!chat_template) throw UnsupportedModel("the model has no chat template that is known; use /v1/completions");
  return *chat_template;
}

}  // namespace razorkv::server
