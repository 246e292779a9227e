// Waiting for a generation on behalf of a client, and streams of server-sent events.
#pragma once

#include <httplib.h>

#include <functional>
#include <memory>
#include <string>

#include "server/generation.h"

namespace razorkv::server {

/// A generation and the connection that waits for it. Ends the generation when the client goes away.
class ClientWait {
 public:
  ClientWait(std::shared_ptr<Generation> generation, const httplib::Request& request);

  /// Waits for news. Throws what the generation throws, and Cancelled when the client has gone.
  Generation::Wait next(GenerationDelta& delta);
  Generation& generation() { return *generation_; }

 private:
  std::shared_ptr<Generation> generation_;
  int socket_;
};

/// Writes one event; false when the client has gone.
using SendEvent = std::function<bool(const std::string& data)>;
/// Writes all events of a stream. What it throws is sent as a last event, an error object.
using EventSource = std::function<void(const SendEvent& send)>;

/// Makes the response a stream of events, ended by "[DONE]" unless there was an error. `generation` is cancelled when
/// the stream ends early.
void send_events(httplib::Response& response, std::shared_ptr<Generation> generation, EventSource source);

}  // namespace razorkv::server
