// Files that are either the old one or the new one, never a piece of the new one.
#pragma once

#include <string>
#include <string_view>

namespace razorkv {

/// Writes `content` to a temporary file beside `path`, flushes it to the disk and renames it. Creates missing folders.
/// Throws FileError and leaves no temporary file; an existing `path` is then as before.
void write_file_atomically(const std::string& path, std::string_view content);

/// The whole file. Throws FileError when it cannot be read or is longer than `max_bytes`.
std::string read_whole_file(const std::string& path, std::size_t max_bytes);

}  // namespace razorkv
