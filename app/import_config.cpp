// SPDX-License-Identifier: Apache-2.0
#include "app/import_config.h"

#include <cstdio>
#include <filesystem>

#include "anemoi/document.h"
#include "anemoi/training_config.h"
#include "app/run/exit_codes.h"
#include "app/run/run_config.h"
#include "core/check.h"
#include "core/file_io.h"

namespace aifs::app {

namespace {

// Reads the result as a run would.
void check(const anemoi::Imported& imported) {
  try {
    parse_config(imported.config().dump(), {});
  } catch (const ConfigError& error) {
    const std::string origin = imported.target.origin_of(error.path());
    throw ConfigError(origin, concat("gives a configuration that is refused: ", error.what()),
                      error.hint());
  }
}

}  // namespace

int import_config(const ImportConfigCommand& command) {
  const fs::path file(command.file);
  const anemoi::Json tree = anemoi::read_document(file);
  const anemoi::Imported imported = anemoi::import_training_config(tree, file.stem().string());
  check(imported);
  const std::string text = imported.config().dump(2) + "\n";
  if (command.report.empty()) {
    std::fputs(anemoi::remarks_text(imported.remarks).c_str(), stderr);
  } else {
    write_file_atomic(command.report, anemoi::remarks_json(imported.remarks).dump(1) + "\n");
  }
  std::fputs(text.c_str(), stdout);
  return command.strict && imported.num_not_honoured() > 0 ? kNotHonoured : kSuccess;
}

}  // namespace aifs::app
