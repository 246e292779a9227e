// ggml and libllama print to stderr unless told otherwise; the library never prints.
#pragma once

namespace razorkv {

/// Routes the messages of ggml and libllama to nothing, once per process. Safe to call from many threads.
/// A callback that the host program sets afterwards stays.
void silence_library_logs();

}  // namespace razorkv
