// SPDX-License-Identifier: Apache-2.0
// Plain words mean what OmegaConf takes them for.
#include "anemoi/yaml_scalar.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::ordered_json;

namespace {

void require_value(const std::string& word, const Json& expected) {
  const Json value = anemoi::yaml_scalar(word);
  INFO("'" << word << "' is " << value.dump());
  REQUIRE(value.type_name() == std::string(expected.type_name()));
  REQUIRE(value == expected);
}

}  // namespace

TEST_CASE("numbers, as OmegaConf reads them", "[anemoi]") {
  require_value("0", 0);
  require_value("-12", -12);
  require_value("1_000", 1000);
  require_value("0x1f", 31);
  require_value("010", 8);
  require_value("0b101", 5);
  require_value("1:30", 90);
  require_value("1e-3", 1e-3);
  require_value("3e-7", 3e-7);
  require_value("0.625e-4", 0.625e-4);
  require_value("1.e-4", 1e-4);
  require_value("32.", 32.0);
  require_value(".5", 0.5);
  require_value("+1.5", 1.5);
  require_value("1:30.5", 90.5);
  require_value("9223372036854775807", INT64_MAX);
  require_value("9223372036854775808", 9223372036854775808.0);
  REQUIRE(anemoi::yaml_scalar("-.inf").get<double>() < 0.0);
  REQUIRE(std::isinf(anemoi::yaml_scalar("1e999").get<double>()));
  REQUIRE(std::isnan(anemoi::yaml_scalar(".nan").get<double>()));
}

TEST_CASE("words that are no numbers", "[anemoi]") {
  for (const char* word : {"", "~", "null", "Null", "NULL"})
    require_value(word, nullptr);
  for (const char* word : {"true", "True", "yes", "On"})
    require_value(word, true);
  for (const char* word : {"false", "no", "OFF"})
    require_value(word, false);
  for (const char* word :
       {"6h", "10u", "2d", "nan", "2020-01-01", "2020-01-01T06:00:00", "16-mixed", "None", "e5",
        "1e", "-", "+", "08x", "_", "0x", "???", "1.2.3", "y"}) {
    require_value(word, word);
  }
  require_value(std::string(100'000, '1'), std::string(100'000, '1'));
}
