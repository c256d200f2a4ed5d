// SPDX-License-Identifier: Apache-2.0
// From an exception to a message and an exit code.
#pragma once

#include <exception>

#include "parallel/together.h"

namespace aifs::app {

// The exit code (app/run/exit_codes.h) of a program that ends with this exception.
int exit_code_of(const std::exception& error);
// Logs message and hint.
void report(const std::exception& error);
// Both, for parallel::together().
parallel::FailureHandling failure_handling();

}  // namespace aifs::app
