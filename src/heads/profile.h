// A head profile: scores of a model's heads, how they were made, and named plans of what each KV head keeps.
// One JSON file per model; format in profile_json.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heads/head_plan.h"
#include "heads/head_shape.h"

namespace razorkv {

inline constexpr int kProfileVersion = 1;

struct ProfileModel {
  std::string fingerprint;   ///< LoadedModel::fingerprint()
  std::string architecture;  ///< general.architecture
  std::string name;          ///< general.name, may be empty
  HeadShape shape;
  bool operator==(const ProfileModel&) const = default;
};

/// How the scores were made; scores are the mean over the seeds.
struct ScoringFacts {
  std::int64_t block = 0;  ///< K as used
  std::int64_t repeats = 0;
  std::vector<std::uint64_t> seeds;
  std::int64_t id_low = 0;
  std::int64_t id_high = 0;  ///< exclusive
  bool distinct = false;
  bool prefix = false;       ///< BOS stood in front
  bool before_rope = false;  ///< scores of queries and keys before RoPE
  bool operator==(const ScoringFacts&) const = default;
};

struct HeadProfile {
  ProfileModel model;
  std::string engine_version;
  /// Both or neither: a profile may hold imported or measured plans only.
  std::optional<ScoringFacts> scoring;
  std::optional<HeadScores> scores;
  std::map<std::string, HeadPlan> plans;
  bool operator==(const HeadProfile&) const = default;
};

std::string profile_to_json(const HeadProfile& profile);
/// `origin` names the text in errors. Throws FileError for anything but a complete profile of this version.
HeadProfile profile_from_json(const std::string& text, const std::string& origin);

/// Throws FileError when missing, unreadable or refused by profile_from_json().
HeadProfile read_profile(const std::string& path);
/// Written to a temporary file beside `path`, then renamed: the old file stays whole until the new one is.
/// Creates missing folders. Throws FileError.
void write_profile(const std::string& path, const HeadProfile& profile);

/// Throws FileError naming both models unless the profile was made for this one.
void require_model(const HeadProfile& profile, const ProfileModel& model, const std::string& path);

/// Where a model's profile may lie, in the order of looking:
/// 1. MODEL.razorkv.json beside the model file MODEL
/// 2. ${XDG_CACHE_HOME:-~/.cache}/razorkv/profiles/FINGERPRINT.json
/// 3. ${RAZORKV_PROFILES:-share/razorkv/profiles beside the command's bin folder}/FINGERPRINT.json
std::vector<std::string> profile_places(const std::string& model_path, const std::string& fingerprint);
/// The second of these places: where profiles made on first use go.
std::string profile_cache_path(const std::string& fingerprint);

struct FoundProfile {
  std::string path;
  HeadProfile profile;
};
/// The first of `places` that exists. A file that exists but is corrupt or of another model throws FileError rather
/// than letting a later place win silently.
std::optional<FoundProfile> find_profile(const std::vector<std::string>& places, const ProfileModel& model);

}  // namespace razorkv
