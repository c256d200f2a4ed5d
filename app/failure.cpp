// SPDX-License-Identifier: Apache-2.0
#include "app/failure.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <string>

#include "app/exit_codes.h"
#include "core/check.h"
#include "core/log.h"

namespace aifs::app {

int exit_code_of(const std::exception& error) {
  if (const auto* known = dynamic_cast<const parallel::FailedTogether*>(&error))
    return known->code();
  if (dynamic_cast<const ConfigError*>(&error)) return kUsage;
  if (dynamic_cast<const DataError*>(&error)) return kData;
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&error)) return kData;
  if (dynamic_cast<const NumericalError*>(&error)) return kNumerical;
  return kInternal;
}

void report(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  const bool torch_memory = torch_error && (text.find("alloc") != std::string::npos ||
                                            text.find("out of memory") != std::string::npos);
  if (dynamic_cast<const std::bad_alloc*>(&error) || torch_memory) {
    log::error("out of memory");
    log::error("hint: use a smaller batch, model or grid, or more ranks per sample");
    return;
  }
  // In case one is thrown after all: the reason of the system, not the words of the library.
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return log::error("cannot examine '", files->path1().string(), "': ", files->code().message());
  }
  log::error(text);
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours && !ours->hint().empty()) log::error("hint: ", ours->hint());
}

parallel::FailureHandling failure_handling() {
  return {exit_code_of, report};
}

}  // namespace aifs::app
