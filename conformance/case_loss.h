// SPDX-License-Identifier: Apache-2.0
// The loss of one dataset of a model case.
#pragma once

#include "conformance/model_setup.h"
#include "train/loss/loss_term.h"

namespace aifs::conformance {

// Any loss that cases of losses know, with the scalers stored beside the batch. It takes
// predictions (B, T, E, N, V_out) and targets (B, T, 1, N, V) with all variables of the dataset.
train::LossPtr case_loss(const Json& json, const SafetensorsFile& tensors,
                         const CaseDataset& dataset, at::ScalarType dtype);

}  // namespace aifs::conformance
