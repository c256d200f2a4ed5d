// SPDX-License-Identifier: Apache-2.0
// What an exception says to a user, whatever library it comes from.
#pragma once

#include <exception>
#include <string>

namespace aifs::train {

// True if memory, of the host or of a device, could not be had.
bool is_out_of_memory(const std::exception& error);

// "out of memory" for those, the reason of the system for files that cannot be examined, else the
// message, without the backtrace that LibTorch adds.
std::string error_text(const std::exception& error);

}  // namespace aifs::train
