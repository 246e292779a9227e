// Whether the client of a running request is still there.
#pragma once

#include <string>

namespace razorkv::server {

/// The server's own socket whose peer has this address and port; -1: none. cpp-httplib hands its socket to nobody, and
/// a request that is being read or computed must end when its client goes away.
int find_connection(const std::string& peer_address, int peer_port);

/// True when the peer has closed its side. `socket` as above; -1 gives false.
bool peer_has_left(int socket);

}  // namespace razorkv::server
