#include "heads/profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "razorkv/error.h"

namespace razorkv {
namespace {

namespace fs = std::filesystem;

HeadProfile sample() {
  HeadProfile profile;
  profile.engine_version = "0.1.0";
  HeadShape shape;
  shape.head_width = 64;
  shape.sliding_window = 512;
  shape.layers = {{4, 2, false}, {4, 2, true}, {6, 2, false}};
  profile.model = {std::string(64, 'a'), "llama", "Té st", shape};
  profile.scoring = ScoringFacts{2047, 4, {1, 18446744073709551615ULL}, 0, 49152, false, true, false};
  profile.scores = HeadScores{{{.1, .2, 1.0 / 3.0, .4}, {0, 0, 0, 0}, {.97, .1, .2, .3, .4, .5}},
                              {{.1, .0, .3, .4}, {0, 0, 0, 0}, {1e-17, .1, .2, .3, .4, .5}}};
  const HeadRule local{false, 4, 4000, 5, true};
  profile.plans["paper"] = make_plan(shape, std::vector<HeadId>{{2, 0}}, local, "14% + 1%");
  profile.plans["short"] = make_plan(shape, {}, HeadRule{false, 4, 128, 64, false}, "measured");
  return profile;
}

class ProfileFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "razorkv-profile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

std::string refusal(const std::string& text) {
  try {
    profile_from_json(text, "p.json");
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(ProfileJson, RoundTripIsExact) {
  const HeadProfile profile = sample();
  EXPECT_EQ(profile_from_json(profile_to_json(profile), "p.json"), profile);
  HeadProfile plans_only = sample();
  plans_only.scoring.reset();
  plans_only.scores.reset();
  EXPECT_EQ(profile_from_json(profile_to_json(plans_only), "p.json"), plans_only);
}

TEST(ProfileJson, EveryCutIsRefused) {
  const std::string text = profile_to_json(sample());
  for (std::size_t length = 0; length + 2 < text.size(); length += 7) {
    EXPECT_NE(refusal(text.substr(0, length)), "") << length;
  }
}

TEST(ProfileJson, EveryRemovedFieldIsRefused) {
  const nlohmann::json whole = nlohmann::json::parse(profile_to_json(sample())).flatten();
  for (const auto& [pointer, value] : whole.items()) {
    nlohmann::json changed = nlohmann::json::parse(profile_to_json(sample()));
    const nlohmann::json::json_pointer place(pointer);
    if (changed.at(place.parent_pointer()).is_object()) {
      changed.at(place.parent_pointer()).erase(place.back());
    } else {
      changed.at(place.parent_pointer()).erase(changed.at(place.parent_pointer()).size() - 1);
    }
    if (pointer.rfind("/scoring/seeds", 0) == 0) continue;  // one seed less is another valid profile
    EXPECT_NE(refusal(changed.dump()), "") << pointer;
  }
}

TEST(ProfileJson, EveryFieldOfAnotherTypeIsRefused) {
  const nlohmann::json whole = nlohmann::json::parse(profile_to_json(sample())).flatten();
  for (const auto& [pointer, value] : whole.items()) {
    for (const nlohmann::json& other : {nlohmann::json(nullptr), nlohmann::json(-1), nlohmann::json(1e300),
                                        nlohmann::json("x"), nlohmann::json::array(), nlohmann::json::object()}) {
      if (value.is_string() && other.is_string() && pointer != "/format" && value != "all" && value != "post") continue;
      nlohmann::json changed = nlohmann::json::parse(profile_to_json(sample()));
      changed[nlohmann::json::json_pointer(pointer)] = other;
      EXPECT_NE(refusal(changed.dump()), "") << pointer << " = " << other;
    }
  }
}

TEST(ProfileJson, SaysWhatWasExpected) {
  const auto changed = [](const char* pointer, const nlohmann::json& value) {
    nlohmann::json document = nlohmann::json::parse(profile_to_json(sample()));
    document[nlohmann::json::json_pointer(pointer)] = value;
    return refusal(document.dump());
  };
  EXPECT_EQ(changed("/version", 2), "p.json.version: expected 1; make a new profile with razorkv profile, found 2");
  EXPECT_EQ(
      changed("/model/layers/0/kv_heads", 3),
      R"(p.json.model.layers[0]: expected KV heads that divide the query heads, found {"heads":4,"kv_heads":3,"sliding":false})");
  EXPECT_EQ(changed("/scores/echo/0/1", 1.5), "p.json.scores.echo[0][1]: expected a number from 0 to 1.001, found 1.5");
  EXPECT_EQ(changed("/scores/kv_induction/0/1", 0.39),
            "p.json.scores.kv_induction: expected the largest induction score of each group, found "
            "[[0.2,0.39],[0.0,0.0],[0.97,0.5]]");
  EXPECT_EQ(changed("/plans/short/layers/0/0/floor", 0),
            "p.json.plans.short.layers[0][0].floor: expected a whole number from 1 to 1099511627776, found 0");
  EXPECT_EQ(changed("/plans/short/layers/1/0", "all"),
            "p.json.plans.short.layers[1][0]: expected the model's own window of 512 rows in a sliding layer, found "
            "\"all\"");
  EXPECT_NE(refusal("[]").find("head profile"), std::string::npos);
  EXPECT_NE(refusal("{} x").find("complete JSON"), std::string::npos);
  EXPECT_NE(refusal(std::string(200000, '[')), "");
}

TEST_F(ProfileFile, WriteReplacesTheOldFileAndLeavesNothingElse) {
  HeadProfile profile = sample();
  const std::string file = path("deep/er/model.json");
  write_profile(file, profile);
  EXPECT_EQ(read_profile(file), profile);
  profile.plans.erase("short");
  write_profile(file, profile);
  EXPECT_EQ(read_profile(file), profile);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "deep/er"), fs::directory_iterator()), 1);
}

TEST_F(ProfileFile, FailedWriteLeavesTheOldFile) {
  fs::create_directories(folder_ / "occupied.json/inside");  // a folder cannot be replaced by a file
  EXPECT_THROW(write_profile(path("occupied.json"), sample()), FileError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  EXPECT_THROW(write_profile("/proc/no/such/place.json", sample()), FileError);
}

TEST_F(ProfileFile, UnreadableFilesAreRefused) {
  EXPECT_THROW(read_profile(path("missing.json")), FileError);
  EXPECT_THROW(read_profile(folder_.string()), FileError);
  std::ofstream(path("empty.json")).close();
  EXPECT_THROW(read_profile(path("empty.json")), FileError);
}

TEST_F(ProfileFile, FoundInDocumentedOrder) {
  ::setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);
  ::setenv("RAZORKV_PROFILES", path("shipped").c_str(), 1);
  HeadProfile profile = sample();
  const std::vector<std::string> places = profile_places(path("m.gguf"), profile.model.fingerprint);
  const std::string hash(64, 'a');
  EXPECT_EQ(places,
            (std::vector<std::string>{path("m.gguf.razorkv.json"), path("cache/razorkv/profiles/" + hash + ".json"),
                                      path("shipped/" + hash + ".json")}));
  EXPECT_FALSE(find_profile(places, profile.model).has_value());
  for (std::size_t place = places.size(); place-- > 0;) {
    profile.engine_version = std::to_string(place);
    write_profile(places[place], profile);
    const auto found = find_profile(places, profile.model);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->path, places[place]);
    EXPECT_EQ(found->profile.engine_version, std::to_string(place));
  }
  std::ofstream(places[0]) << "{";
  EXPECT_THROW(find_profile(places, profile.model), FileError);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("RAZORKV_PROFILES");
}

TEST_F(ProfileFile, ProfileOfAnotherModelNamesBoth) {
  const HeadProfile profile = sample();
  write_profile(path("p.json"), profile);
  ProfileModel other = profile.model;
  other.fingerprint = std::string(64, 'b');
  other.name = "Other";
  try {
    find_profile({path("p.json")}, other);
    FAIL();
  } catch (const FileError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("Té st"), std::string::npos);
    EXPECT_NE(message.find("'Other'"), std::string::npos);
    EXPECT_NE(message.find(std::string(16, 'a')), std::string::npos);
    EXPECT_NE(message.find(std::string(16, 'b')), std::string::npos);
  }
  other = profile.model;
  other.shape.layers.pop_back();
  EXPECT_THROW(require_model(profile, other, "p.json"), FileError);
  require_model(profile, profile.model, "p.json");
}

}  // namespace
}  // namespace razorkv
