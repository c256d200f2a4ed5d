// SPDX-License-Identifier: Apache-2.0
#include "core/host.h"

#include <sys/utsname.h>

#include <fstream>

namespace aifs {

std::string host_name() {
  utsname info{};
  return ::uname(&info) == 0 ? info.nodename : "unknown host";
}

std::string machine_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  return std::getline(file, boot) && !boot.empty() ? boot : host_name();
}

std::string host_identity() {
  return host_name() + " on " + machine_identity();
}

}  // namespace aifs
