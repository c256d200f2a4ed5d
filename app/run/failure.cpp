// SPDX-License-Identifier: Apache-2.0
#include "app/run/failure.h"

#include <filesystem>

#include "app/run/exit_codes.h"
#include "core/check.h"
#include "core/log.h"
#include "train/error_text.h"

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
  log::error(train::error_text(error));
  if (train::is_out_of_memory(error)) {
    log::error("hint: use a smaller batch, model or grid, or more ranks per sample");
  }
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours && !ours->hint().empty()) log::error("hint: ", ours->hint());
}

parallel::FailureHandling failure_handling() {
  return {exit_code_of, report};
}

}  // namespace aifs::app
