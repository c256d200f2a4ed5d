// SPDX-License-Identifier: Apache-2.0
// Models for other programs, and from them, as a folder (docs/formats/exchange.md):
//   model.safetensors   the state dict of Anemoi's model interface, names, shapes and order
//   graph.safetensors   the graph that learnt tensors belong to (app/run/graph_tensors.h)
//   truncation.safetensors  the matrices of a truncated residual, if there is one: down/row,
//                       down/column, down/value, up/...
//   metadata.json       variables and their roles, statistics, times, attributes of the dataset
//   config.json         the effective configuration; what another program writes may lack it
// tools/anemoi_checkpoint.py makes an Anemoi checkpoint of such a folder, and the other way round.
#pragma once

#include "app/run/wiring.h"

namespace aifs::app {

// Writes the weights of a checkpoint of `run`'s model to `folder`, which must not exist or be
// empty. Throws ConfigError, DataError. Local, on the CPU.
void export_model(Run& run, const train::CheckpointInfo& checkpoint, const fs::path& folder);

// Makes `config.run.dir` a run that starts from the weights in `folder`, on the graph there:
// checkpoints/step-00000000, graph.nc and config.json. Returns the path of the checkpoint.
// Throws ConfigError where the model or its normaliser is not that of `config`, and DataError.
// Local, on the CPU.
fs::path import_model(RunConfig config, const fs::path& folder, const parallel::ProcessMesh& mesh);

}  // namespace aifs::app
