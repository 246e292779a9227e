#include "heads/profile.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "razorkv/error.h"

namespace razorkv {
namespace {

constexpr std::size_t kMaxProfileBytes = 256UL << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::filesystem::path shipped_folder() {
  if (const std::string folder = environment("RAZORKV_PROFILES"); !folder.empty()) return folder;
  std::error_code error;
  const std::filesystem::path command = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : command.parent_path().parent_path() / "share/razorkv/profiles";
}

std::string described(const ProfileModel& model) {
  return fmt::format("{} '{}' ({} layers, fingerprint {})", model.architecture, model.name, model.shape.layers.size(),
                     model.fingerprint.substr(0, 16));
}

}  // namespace

HeadProfile read_profile(const std::string& path) {
  return profile_from_json(read_whole_file(path, kMaxProfileBytes), path);
}

void write_profile(const std::string& path, const HeadProfile& profile) {
  write_file_atomically(path, profile_to_json(profile));
}

void require_model(const HeadProfile& profile, const ProfileModel& model, const std::string& path) {
  if (profile.model.fingerprint == model.fingerprint && profile.model.shape == model.shape) return;
  throw FileError(
      fmt::format("{}: this head profile was made for {}, the model at hand is {}; remove the file or make "
                  "a new one with razorkv profile",
                  path, described(profile.model), described(model)));
}

std::string profile_cache_path(const std::string& fingerprint) {
  std::filesystem::path cache = environment("XDG_CACHE_HOME");
  if (cache.empty()) cache = std::filesystem::path(environment("HOME")) / ".cache";
  return (cache / "razorkv/profiles" / (fingerprint + ".json")).string();
}

std::vector<std::string> profile_places(const std::string& model_path, const std::string& fingerprint) {
  std::vector<std::string> places{model_path + ".razorkv.json", profile_cache_path(fingerprint)};
  if (const std::filesystem::path shipped = shipped_folder(); !shipped.empty()) {
    places.push_back((shipped / (fingerprint + ".json")).string());
  }
  return places;
}

std::optional<FoundProfile> find_profile(const std::vector<std::string>& places, const ProfileModel& model) {
  for (const std::string& path : places) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    FoundProfile found{path, read_profile(path)};
    require_model(found.profile, model, path);
    return found;
  }
  return std::nullopt;
}

}  // namespace razorkv
