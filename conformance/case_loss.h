// SPDX-License-Identifier: Apache-2.0
// The loss of one dataset of a model case or training run.
#pragma once

#include "conformance/loss_build.h"
#include "conformance/model_setup.h"
#include "conformance/report.h"

namespace aifs::conformance {

// Any loss that cases of losses know. Its scalers are made of their options, if the case has some,
// as the program makes them of a configuration and a graph; else they are those stored beside the
// batch. It takes predictions (B, T, E, N, V_out) and targets (B, T, 1, N, V) with all variables of
// the dataset, unless `use` says otherwise.
train::LossPtr case_loss(const Json& json, const SafetensorsFile& tensors,
                         const CaseDataset& dataset, const LossUse& use);

// Compares the scalers that are made of options with the stored ones.
void compare_scalers(const Json& json, const SafetensorsFile& tensors, const CaseDataset& dataset,
                     const LossUse& use, Comparison& comparison);

}  // namespace aifs::conformance
