// SPDX-License-Identifier: Apache-2.0
// A configuration of Anemoi's: YAML, of which JSON is a part, with references.
#include "anemoi/document.h"
#include "anemoi/training_config.h"
#include "tests/fuzz/fuzz.h"

using namespace aifs;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (!anemoi::reads_yaml()) return 0;
  const std::string text = fuzz::text_of(bytes, size);
  return fuzz::run(text, [&] {
    const anemoi::Json tree = anemoi::parse_yaml(text, "input", {.values = 20'000});
    if (!tree.is_object()) return;
    const anemoi::Imported imported = anemoi::import_training_config(tree, "input");
    static_cast<void>(remarks_text(imported.remarks));
  });
}
