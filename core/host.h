// SPDX-License-Identifier: Apache-2.0
// The machine this process runs on. A name alone does not tell machines apart: some clusters call
// every node "localhost", and containers of one machine have names of their own.
#pragma once

#include <string>

namespace aifs {

// The name of this machine, or of the container; "unknown host" if the system does not say.
std::string host_name();

// Returns a text that is the same in all processes on this machine, containers included, as long as
// it runs, and in no others: the number that the kernel drew when it started. The name where it
// tells none.
std::string machine_identity();
// Returns a text that is the same in those that also see the same name.
std::string host_identity();

}  // namespace aifs
