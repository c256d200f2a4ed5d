// SPDX-License-Identifier: Apache-2.0
#include "train/output/appended_text.h"

#include "core/log.h"

namespace aifs::train {

void AppendedText::append(std::string_view text, std::string_view header) {
  const std::string reason = append_whole(path_, text, header);
  if (!reason.empty()) note_failure(reason);
}

void AppendedText::note_failure(const std::string& reason) {
  if (num_failures_++ > 0) return;
  log::warning("cannot write '", path_.string(), "': ", reason,
               "; training goes on, and what comes later will be tried");
}

}  // namespace aifs::train
