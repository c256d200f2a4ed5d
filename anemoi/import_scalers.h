// SPDX-License-Identifier: Apache-2.0
// Scalers: the weights of errors.
#pragma once

#include "anemoi/sections.h"

namespace aifs::anemoi {

// The name here of a scaler's kind, or "".
std::string scaler_kind(const Place& definition);

// Translates the definitions of the scalers that losses use.
void import_scalers(Translation& t, const Place& definitions, const std::vector<std::string>& used,
                    const Section& loss);

}  // namespace aifs::anemoi
