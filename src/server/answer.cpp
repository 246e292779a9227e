#include "server/answer.h"

#include <chrono>
#include <utility>

#include "razorkv/error.h"
#include "server/api_error.h"
#include "server/client_connection.h"
#include "server/completion_response.h"

namespace razorkv::server {

ClientWait::ClientWait(std::shared_ptr<Generation> generation, const httplib::Request& request)
    : generation_(std::move(generation)), socket_(find_connection(request.remote_addr, request.remote_port)) {}

Generation::Wait ClientWait::next(GenerationDelta& delta) {
  for (;;) {
    const Generation::Wait news = generation_->next(delta, std::chrono::milliseconds(200));
    if (news == Generation::Wait::finished) return news;
    if (peer_has_left(socket_)) {
      generation_->cancel();
      throw Cancelled("the client has closed the connection");
    }
    if (news != Generation::Wait::timeout) return news;
  }
}

void send_events(httplib::Response& response, std::shared_ptr<Generation> generation, EventSource source) {
  response.set_header("Cache-Control", "no-store");
  response.set_chunked_content_provider(
      "text/event-stream",
      [source = std::move(source)](std::size_t, httplib::DataSink& sink) {
        const SendEvent send = [&sink](const std::string& data) {
          const std::string event = "data: " + data + "\n\n";
          return sink.write(event.data(), event.size());
        };
        try {
          source(send);
          send("[DONE]");
        } catch (...) {
          send(to_text(to_api_error(std::current_exception()).body()));
        }
        sink.done();
        return true;
      },
      [generation = std::move(generation)](bool) { generation->cancel(); });
}

}  // namespace razorkv::server
