// SPDX-License-Identifier: Apache-2.0
// The set-ups of the published measurements: 88 prognostic, 13 forcing and 1 diagnostic variable,
// 16 layers, batch 1, bf16 on one card.
#pragma once

#include "plan/step_plan.h"

namespace aifs::test {

inline const plan::GraphTotals kO96Tri5{40320, 10242, 62980, 81840, 120960};
inline const plan::GraphTotals kN320Tri5{542080, 10242, 655488, 81840, 1626240};
inline const plan::GraphTotals kN320Tri6{542080, 40962, 852840, 327600, 1626240};

inline const plan::GraphTotals kO1280Tri8{6599680, 655362, 10402654, 5242800, 19799040};

inline plan::NetworkInput published_network(model::BlockKind kind, int64_t channels,
                                            const plan::GraphTotals& totals) {
  model::ModelOptions options;
  options.channels = channels;
  options.layers = 16;
  options.encoder.kind = options.processor.kind = options.decoder.kind = kind;
  return {.model = options,
          .totals = totals,
          .prognostic = 88,
          .forcing = 13,
          .diagnostic = 1,
          .types = {4, 2},
          .gpu = true};
}

inline plan::RankRows one_rank(const plan::GraphTotals& totals) {
  plan::RankRows rows{.data = totals.data, .hidden = totals.hidden};
  rows.encoder = {.edges = totals.encoder_edges, .sources = totals.data};
  rows.processor = {.edges = totals.processor_edges, .sources = totals.hidden};
  rows.decoder = {.edges = totals.decoder_edges, .sources = totals.hidden};
  return rows;
}

inline plan::StepInput published_step(model::BlockKind kind, int64_t channels,
                                      const plan::GraphTotals& totals) {
  return {.network = published_network(kind, channels, totals),
          .arithmetic = plan::Arithmetic::kHalf,
          .dataset_variables = 102};
}

}  // namespace aifs::test
