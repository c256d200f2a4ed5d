// SPDX-License-Identifier: Apache-2.0
#include "core/host.h"

#include <unistd.h>

#include <array>

#include "tests/support/catch.h"

using namespace aifs;

TEST_CASE("the host is called as the system calls it", "[host]") {
  std::array<char, 256> name{};
  REQUIRE(::gethostname(name.data(), name.size() - 1) == 0);
  REQUIRE(host_name() == name.data());
  REQUIRE_THAT(host_identity(), ContainsSubstring(host_name()));
}

TEST_CASE("a machine is known by one line that stays", "[host]") {
  REQUIRE_FALSE(machine_identity().empty());
  REQUIRE(machine_identity().find('\n') == std::string::npos);
  REQUIRE(machine_identity() == machine_identity());
  REQUIRE_THAT(host_identity(), ContainsSubstring(machine_identity()));
}
