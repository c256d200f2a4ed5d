// SPDX-License-Identifier: Apache-2.0
// The whole network: input assembly, encoders, processor, decoders, residual, bounding (Anemoi's
// AnemoiModelEncProcDec, its hierarchical and its ensemble form). It takes a prebuilt graph and
// never builds one.
#pragma once

#include "model/layers/noise.h"
#include "model/network/parts.h"
#include "model/network/prediction.h"
#include "model/network/stage_walk.h"

namespace aifs::model {

// What goes in and out: times and variables.
struct FieldLayout {
  int64_t times_in = 2, times_out = 1;
  int64_t num_inputs = 0;                     // V_in: forcing and prognostic
  OutputVariables outputs;                    // V_out: prognostic and diagnostic
  std::vector<int64_t> input_prognostic;      // the k-th prognostic variable among the inputs ...
  std::vector<int64_t> output_prognostic;     // ... and among the outputs
  std::vector<std::string> input_names = {};  // V_in; for options that name inputs
  std::vector<double> stdev_tendency = {};    // of prognostic variables per step, or empty

  int64_t num_outputs() const { return static_cast<int64_t>(outputs.names.size()); }
  std::vector<int64_t> input_forcing() const;  // the inputs that are not prognostic
};

// One dataset with its own nodes, encoder and decoder.
struct DatasetPlan {
  std::string name = "data";                           // of its node set too
  std::string encoder_name = "0", decoder_name = "0";  // datasets may share an encoder by its name
  BlockOptions encoder;
  DecoderOptions decoder;
  int64_t encoder_trainable = 8, decoder_trainable = 8;  // per edge
  FieldLayout layout;
  ResidualOptions residual;
  std::vector<double> stdev_tendency = {};  // of the prognostic variables; may be empty
  std::vector<BoundingOptions> bounding;
  PartPaths paths = {};  // of its options
};

// Everything a network is made of besides the graph.
struct NetworkPlan {
  ModelOptions options;  // the parts that datasets share
  std::vector<DatasetPlan> datasets;
  std::vector<std::string> meshes{"hidden"};           // hidden node sets, fine to coarse
  std::map<std::string, int64_t> node_trainable = {};  // per node set
  Aggregation aggregation = Aggregation::kSum;
  // From the nodes that noise is drawn on to the hidden ones, noise_matrix().
  SparseMatrix noise_projection = {};

  // Throws ConfigError for parts that do not fit together.
  void validate() const;
  // One dataset called "data", as a configuration describes it.
  static NetworkPlan single(const ModelOptions& options, const FieldLayout& layout);
};

// What a forecast step knows besides the fields.
struct StepContext {
  int64_t step = 0;       // of the rollout
  at::Tensor noise = {};  // as of draw_noise(); undefined: drawn
};

class EncoderProcessorDecoder {
 public:
  // Registers all tensors in `parameters` under the names of Anemoi's state_dict (relative to the
  // network). Throws ConfigError with paths under "model".
  EncoderProcessorDecoder(ParameterSet& parameters, const ModelOptions& options,
                          const GraphTensors& graph, const FieldLayout& layout);
  EncoderProcessorDecoder(ParameterSet& parameters, const NetworkPlan& plan,
                          const GraphTensors& graph);

  // x: (B, T, E, N, V_in) normalised, newest time last, in the type of the parameters.
  // Returns (B, T', E, N, V_out) normalised, after residual and bounding, in the type of x. Of
  // several stages only the last one returns something defined; the others need the sizes of x, the
  // first one its values.
  at::Tensor forward(const at::Tensor& x, const StepContext& context = {}) const;
  // The same for every dataset, in the order of the plan.
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& x,
                                  const StepContext& context = {}) const;

  // Layout of the first dataset, or of one.
  const FieldLayout& layout(size_t dataset = 0) const { return datasets_[dataset].layout; }
  size_t num_datasets() const { return datasets_.size(); }
  // Members that a forecast must have; 1 if there is no noise.
  int64_t num_members() const { return num_members_; }
  bool has_noise() const { return noise_ != nullptr; }
  // Whether inputs of processor layers wait on the host for the backward pass.
  bool uses_host_memory() const { return uses_host_memory_; }
  // Noise for a step from x, (B, E, N, noise channels) of unit variance from the default generator,
  // for all nodes of all ranks; undefined if the network takes none.
  at::Tensor draw_noise(const at::Tensor& x) const;
  // What the encoder sees of an input: itself, unless the residual filters it. Throws Error for
  // another shape than the layout's.
  at::Tensor prepare(const at::Tensor& x, size_t dataset = 0) const;
  // What the stages give each other; forward() does what is to be done between them.
  parallel::StageLinks& stage_links() const { return parameters_->stages().links(); }
  // What is added to the prognostic outputs, (B, 1, E, N, P); undefined if nothing is.
  at::Tensor residual(const at::Tensor& x, size_t dataset = 0) const;

 private:
  struct Dataset {
    FieldLayout layout;
    std::string nodes;
    std::vector<TargetFeature> target_features;
    std::unique_ptr<Encoder> encoder;
    std::unique_ptr<Decoder> decoder;
    std::unique_ptr<Residual> residual;
    at::Tensor input_forcing, input_prognostic;  // i64
    GuessColumns guess_columns;
    std::vector<Bounding> boundings;
  };
  // A finer mesh than the deepest, and the way from and to the next coarser one, which is on the
  // stages of the layers after and before it.
  struct Level {
    std::unique_ptr<Processor> down, up;  // null without level processing
    LayerRange down_layers, up_layers;
    std::string coarser;
    std::unique_ptr<Encoder> upscale;
    std::unique_ptr<Decoder> downscale;
  };

  void add_attributes(const NetworkPlan& plan, const GraphTensors& graph);
  void add_encoder(const NetworkPlan& plan, const DatasetPlan& d, const GraphTensors& graph);
  void add_levels(const NetworkPlan& plan, const GraphTensors& graph);
  void add_decoder(const NetworkPlan& plan, const DatasetPlan& d, Dataset& dataset,
                   const GraphTensors& graph);
  void add_output(const DatasetPlan& d, Dataset& dataset, const GraphTensors& graph);
  int64_t data_width(const Dataset& dataset) const;
  // Whether the residual changes what the encoder sees, prepare().
  bool filters(size_t dataset) const;
  at::Tensor data_rows(const Dataset& dataset, const at::Tensor& x, int64_t step) const;
  at::Tensor target_rows(const Dataset& dataset, const at::Tensor& x,
                         const at::Tensor& encoded) const;
  at::Tensor aggregate(const std::vector<at::Tensor>& latents) const;
  at::Tensor process(const at::Tensor& latent, const at::Tensor& noise, int64_t copies,
                     at::Device device) const;
  at::Tensor assemble(const Dataset& dataset, const at::Tensor& decoded, const at::Tensor& x) const;

  ParameterSet* parameters_;
  bool latent_skip_, has_step_input_, uses_host_memory_;
  int64_t num_members_;
  Aggregation aggregation_;
  std::string mesh_;  // the one that encoders and decoders join
  std::map<std::string, NodeAttributes> attributes_;
  std::vector<Dataset> datasets_;
  std::vector<Level> levels_;
  std::unique_ptr<Processor> processor_;
  LayerRange layers_;  // of the processor
  std::unique_ptr<NoiseInjector> noise_;
};

}  // namespace aifs::model
