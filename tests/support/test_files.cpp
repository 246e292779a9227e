#include "support/test_files.h"

#include <cstdlib>
#include <filesystem>

namespace razorkv::test {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> existing(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  return path.string();
}

std::optional<std::string> search_upwards(fs::path folder, const std::string& name) {
  for (;;) {
    if (auto found = existing(folder / "shared" / "data" / name)) return found;
    if (!folder.has_parent_path() || folder == folder.parent_path()) return std::nullopt;
    folder = folder.parent_path();
  }
}

}  // namespace

std::optional<std::string> data_file(const std::string& name) {
  if (const char* folder = std::getenv("RAZORKV_DATA")) return existing(fs::path(folder) / name);
  if (auto found = search_upwards(fs::current_path(), name)) return found;
  return search_upwards(RAZORKV_SOURCE_DIR, name);
}

std::optional<std::string> model_file(const std::string& name) {
  if (const char* folder = std::getenv("RAZORKV_MODELS")) return existing(fs::path(folder) / name);
  fs::path cache;
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != '\0') {
    cache = folder;
  } else if (const char* home = std::getenv("HOME")) {
    cache = fs::path(home) / ".cache";
  } else {
    return std::nullopt;
  }
  return existing(cache / "razorkv" / "models" / name);
}

std::string missing_data(const std::string& name) {
  return "shared data file " + name + " not found; set RAZORKV_DATA to the folder that holds it";
}

std::string missing_model(const std::string& name) {
  return "model " + name + " not found; fetch it or set RAZORKV_MODELS to the folder that holds it";
}

}  // namespace razorkv::test
