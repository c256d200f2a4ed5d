// SPDX-License-Identifier: Apache-2.0
#include "train/error_text.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>

#include "core/check.h"

namespace aifs::train {

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  if (!torch_error) return false;
  const std::string text = torch_error->what_without_backtrace();
  return text.find("alloc") != std::string::npos || text.find("out of memory") != std::string::npos;
}

std::string error_text(const std::exception& error) {
  if (is_out_of_memory(error)) return "out of memory";
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error))
    return torch_error->what_without_backtrace();
  // In case one is thrown after all: the reason of the system, not the words of the library.
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return concat("cannot examine '", files->path1().string(), "': ", files->code().message());
  return error.what();
}

}  // namespace aifs::train
