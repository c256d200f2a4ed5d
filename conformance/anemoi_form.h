// SPDX-License-Identifier: Apache-2.0
// Turns what cases say into the form of Anemoi's configurations, and into sections of ours.
#pragma once

#include <string>

#include "anemoi/training_config.h"
#include "conformance/case_file.h"

namespace aifs::conformance {

// Names classes as Anemoi's configurations do: "_target_" in place of "class".
Json anemoi_form(const Json& json);

// A section of our configuration. Throws NotSupported for the first key that is not honoured.
const Json& section_of(const anemoi::Imported& imported, const std::string& name);

}  // namespace aifs::conformance
