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

#include "anemoi/model_checkpoint.h"
#include "app/run/wiring.h"

namespace aifs::app {

// Writes the weights of a checkpoint of `run`'s model to `folder`, which must not exist or be
// empty. Throws ConfigError, DataError. Local, on the CPU.
void export_model(Run& run, const train::CheckpointInfo& checkpoint, const fs::path& folder);

// What a run can be made of: weights as the state dict of Anemoi's model interface, and the graph
// that they belong to, as in the folder.
struct OtherModel {
  const NamedTensors& weights;
  const NamedTensors& graph;
  const anemoi::SavedTraining* training = nullptr;  // that the run goes on with; null: it begins
};

// Makes `config.run.dir` a run that starts from a model: graph.nc, config.json, and in checkpoints
// step-00000000, or the step of the training. Returns the path of the checkpoint. Throws
// ConfigError where the model or its normaliser is not that of `config`, and DataError; the folder
// is then left as it was. Local, on the CPU.
fs::path import_model(RunConfig config, const OtherModel& model, const parallel::ProcessMesh& mesh);
// As above, of the weights and the graph in `folder`.
fs::path import_folder(RunConfig config, const fs::path& folder, const parallel::ProcessMesh& mesh);

}  // namespace aifs::app
