// SPDX-License-Identifier: Apache-2.0
// Checkpoints: <folder>/step-00000060/ with
//   parameters.safetensors   the state dict under Anemoi's names
//   optimizer.safetensors    moment1/<name>, moment2/<name> and the other states of the optimiser
//   manifest.json            format, versions, configuration and its hash, graph hash, position in
//                            the data, and the SHA-256 of every file
//   COMPLETE                 written last
// A checkpoint is written beside, under a name that no reader looks at and no other writer uses,
// and renamed when complete (where folders cannot be renamed its files are moved, COMPLETE last);
// `latest` names the newest. Tensors are stored by name and whole, so that any layout can read
// them.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "model/base/parameters.h"
#include "train/optim/optimizer.h"
#include "train/output/checkpoint_course.h"
#include "train/output/loop_state.h"

namespace aifs::train {

// Describes what goes into a checkpoint besides tensors.
struct CheckpointMeta {
  std::string program_version, torch_version;
  std::string config_json;  // effective configuration
  std::string config_hash, graph_hash;
  std::string data_json;  // what gives the weights their meaning (data/data_record.h); "": unknown
  std::string time_utc;
  // The checkpoints that led to it, with itself; of a file: nothing if it does not say.
  std::optional<CheckpointCourse> course = {};
};

// The tensors of a checkpoint by name, whole, in the order in which they are written.
struct CheckpointTensors {
  using Named = std::pair<std::string, at::Tensor>;
  std::vector<Named> parameters, states;
  int64_t optimizer_steps = 0;
};
// Returns what is laid out as the flat values, from a rank's own part of it (AdamW::states()).
using WholeState = std::function<at::Tensor(const at::Tensor& own)>;
// Takes a whole tensor to the CPU.
using ToHost = std::function<at::Tensor(const at::Tensor& whole)>;
// Returns a contiguous tensor on the CPU; on the CPU it may share memory with what it is given.
at::Tensor on_host(const at::Tensor& tensor);
// Takes the tensors of a run from all ranks to those that `keep` them; without `whole_state` the
// optimiser is one of all parameters. Collective.
CheckpointTensors gather_tensors(const model::ParameterSet& parameters, const AdamW& optimizer,
                                 bool keep = true, const WholeState& whole_state = {},
                                 const ToHost& to_host = on_host);

// About how long the two large files of a checkpoint become, never less: weights and buffers, and
// `num_states` states of every optimised tensor. Whole tensors, whatever the layout.
std::vector<int64_t> checkpoint_file_bytes(const model::ParameterSet& parameters,
                                           int64_t num_states);

// Steps of checkpoints that stay; nothing: all do.
using KeptSteps = std::optional<std::vector<int64_t>>;

// Writes <folder>/step-<step>/ and points `latest` at it, then removes others as
// remove_old_checkpoints() does. An existing checkpoint of the same step is replaced only once the
// new one is complete. Returns its path.
fs::path write_checkpoint(const fs::path& folder, const LoopState& state,
                          const CheckpointTensors& tensors, const CheckpointMeta& meta,
                          const KeptSteps& kept = std::nullopt);

// Removes what crashed writers left, and checkpoints of steps before `step` that are none of
// `kept`. Those of later steps are of a former course of the run: they stay until it has passed
// them.
void remove_old_checkpoints(const fs::path& folder, int64_t step, const KeptSteps& kept);

// <folder>/step-<step>, whether it is there or not.
fs::path checkpoint_path(const fs::path& folder, int64_t step);
// Points a file beside the checkpoints, such as `latest`, at that of a step. Throws Error.
void write_pointer(const fs::path& file, int64_t step);
// The checkpoint that such a file names, whether it is there or not. Throws DataError if it names
// none.
fs::path pointed_at(const fs::path& file);

// A checkpoint found sound: complete, readable, all checksums right. Files that this process has
// read before and that have not changed since are not read again.
struct CheckpointInfo {
  fs::path path;
  LoopState state;
  CheckpointMeta meta;
  int64_t optimizer_steps = 0;
};

// The steps of all checkpoints under `folder`, sound or not, the last one first. Throws DataError
// if it cannot be listed.
std::vector<int64_t> checkpoint_steps(const fs::path& folder);
// True if there is any. Throws as that does.
inline bool has_checkpoints(const fs::path& folder) {
  return !checkpoint_steps(folder).empty();
}

// Checks one checkpoint folder. Throws DataError saying what is wrong with it.
CheckpointInfo inspect_checkpoint(const fs::path& path);

// The newest sound checkpoint under `folder` (<run>/checkpoints): the one that `latest` names, then
// earlier ones, then later ones; damaged ones are named in a warning and passed over. Nothing if
// there is none at all; DataError if all are damaged.
std::optional<CheckpointInfo> find_latest_checkpoint(const fs::path& folder);

// The file with the weights of a checkpoint, and a tensor of such a file, whole: it shares the
// memory of the file, and is only to be read.
fs::path weights_file(const CheckpointInfo& checkpoint);
at::Tensor stored_tensor(const SafetensorsEntry& entry);

// Copies the tensors in, or the slices of them that this rank holds. Throws DataError listing
// parameters that are missing, superfluous or of another shape: the checkpoint is of another model.
// Nothing is changed in that case. Tensors of adapters are superfluous to a set without adapters,
// which is no fault: the weights hold what they add.
void load_parameters(const CheckpointInfo& checkpoint, model::ParameterSet& parameters);
// Reads them from any file, whose names have `prefix` in front; others are not looked at.
void load_parameters(const NamedTensors& file, const std::string& prefix,
                     model::ParameterSet& parameters);
// Fills the tensors that are there, by name; they are those of an optimiser of all parameters.
void load_optimizer(const CheckpointInfo& checkpoint, const model::ParameterSet& parameters,
                    OptimizerState& optimizer);
// Reads them from any file, whose names are <state>/<parameter>; the number of steps stays.
void load_optimizer(const NamedTensors& file, const model::ParameterSet& parameters,
                    OptimizerState& optimizer);

// Writes the tensors called `names`, in that order, after `first` and with `prefix` in front of
// their names. Returns the SHA-256 of the file.
std::string write_parameters(const fs::path& path, const model::ParameterSet& parameters,
                             const std::vector<std::string>& names, const std::string& prefix,
                             std::vector<SafetensorsItem> first);

// The state that holds averaged weights (AdamW::attach).
inline constexpr const char* kAverageState = "average";
// Copies averaged weights in, over what load_parameters() gave. Throws DataError if there are none.
void load_average(const CheckpointInfo& checkpoint, model::ParameterSet& parameters);

}  // namespace aifs::train
