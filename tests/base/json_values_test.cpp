#include "base/json_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace razorkv {
namespace {

using nlohmann::json;

TEST(WholeNumber, TakesWhatIsInRange) {
  EXPECT_EQ(whole_number(json(-3), -3, 5), -3);
  EXPECT_EQ(whole_number(json(5U), -3, 5), 5);
  EXPECT_EQ(whole_number(json(INT64_MIN), INT64_MIN, 0), INT64_MIN);
  EXPECT_EQ(whole_number(json::parse("9223372036854775807"), 0, INT64_MAX), INT64_MAX);
}

TEST(WholeNumber, RefusesEverythingElse) {
  for (const char* text : {"-4", "6", "1.0", "1e3", "9223372036854775808", "18446744073709551615", "1e308", "\"1\"",
                           "true", "null", "[1]", "{}"}) {
    EXPECT_EQ(whole_number(json::parse(text), -3, 5), std::nullopt) << text;
  }
}

TEST(NumberBetween, TakesWhatIsInRange) {
  EXPECT_EQ(number_between(json(0.5), 0.0, 1.0), 0.5);
  EXPECT_EQ(number_between(json(1), 0.0, 1.0), 1.0);
  EXPECT_EQ(number_between(json(-0.0), 0.0, 1.0), 0.0);
}

TEST(NumberBetween, RefusesEverythingElse) {
  for (const json& value :
       {json(1.0001), json(-1e-9), json(std::nan("")), json(std::numeric_limits<double>::infinity()), json("0.5"),
        json(true), json(nullptr), json::array({0.5})}) {
    EXPECT_EQ(number_between(value, 0.0, 1.0), std::nullopt) << value;
  }
}

}  // namespace
}  // namespace razorkv
