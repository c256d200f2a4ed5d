// SPDX-License-Identifier: Apache-2.0
// The fields of small networks in tests: two forcings and four prognostic variables in, those four
// and a diagnostic one out.
#pragma once

#include "model/network/encoder_processor_decoder.h"

namespace aifs::test {

inline model::FieldLayout toy_layout() {
  model::FieldLayout layout;
  layout.num_inputs = 6;
  layout.outputs.names = {"p", "q", "r", "s", "diagnostic"};
  layout.input_prognostic = {2, 3, 4, 5};
  layout.output_prognostic = {0, 1, 2, 3};
  return layout;
}

}  // namespace aifs::test
