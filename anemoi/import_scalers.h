// SPDX-License-Identifier: Apache-2.0
// Scalers: the weights of errors.
#pragma once

#include "anemoi/sections.h"

namespace aifs::anemoi {

// The name here of a scaler's kind, or "".
std::string scaler_kind(const Place& definition);
// True for the names of kinds.
bool is_kind_name(const std::string& name);

// Describes a scaler that losses use, by Anemoi's name, our kind and our name. It becomes the
// scaler of its kind, whose settings stand in the section "loss", or one of "named_scalers".
struct UsedScaler {
  std::string theirs = {}, kind = {}, ours = {};
  bool is_named = false;
};

// True if the section "loss" cannot describe this scaler as the one of its kind.
bool needs_name(const Translation& t, const Place& definition, const std::string& kind);

// Translates the definitions of the scalers that losses use.
void import_scalers(Translation& t, const Place& definitions, const std::vector<UsedScaler>& used,
                    const Section& loss);

}  // namespace aifs::anemoi
