#include "server/checkpoint_file.h"

#include <utility>

#include "engine/policy_handle.h"
#include "engine/state_file.h"

namespace razorkv::server {

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint, const Policy& policy) {
  write_state(path, *checkpoint.engine, checkpoint.sequence,
              {checkpoint.tokens, checkpoint.logits, policy.description()});
}

Checkpoint read_checkpoint(const std::string& path, const std::shared_ptr<Engine>& engine, const Policy& policy,
                           const std::string& base, bool conversation) {
  LoadedState file = read_state(path, *engine, policy.impl()->rules, policy.description());
  return {engine,      std::move(file.sequence), std::move(file.state.tokens), std::move(file.state.logits), base,
          conversation};
}

}  // namespace razorkv::server
