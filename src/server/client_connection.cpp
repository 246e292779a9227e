#include "server/client_connection.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

namespace razorkv::server {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

bool is_peer(int socket, const std::string& address, int port) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  std::array<char, INET6_ADDRSTRLEN> text{};
  int peer_port = 0;
  if (peer.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &peer, sizeof(in));
    peer_port = ntohs(in.sin_port);
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
  } else if (peer.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &peer, sizeof(in));
    peer_port = ntohs(in.sin6_port);
    inet_ntop(AF_INET6, &in.sin6_addr, text.data(), text.size());
  }
  return peer_port == port && address == text.data();
}

}  // namespace

int find_connection(const std::string& peer_address, int peer_port) {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir("/proc/self/fd"));
  if (!folder) return -1;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    int descriptor = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (is_peer(descriptor, peer_address, peer_port)) return descriptor;
  }
  return -1;
}

bool peer_has_left(int socket) {
  if (socket < 0) return false;
  char byte = 0;
  const ssize_t got = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace razorkv::server
