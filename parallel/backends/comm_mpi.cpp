// SPDX-License-Identifier: Apache-2.0
#include "parallel/backends/comm_mpi.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <exception>
#include <optional>

#include "core/check.h"
#include "parallel/backends/openmpi_components.h"

namespace aifs::parallel {

namespace {

// Elements per call: MPI counts are int.
constexpr int64_t kMostElements = int64_t{1} << 28;

void check_mpi(int status, const char* operation) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(concat("MPI ", operation, ": ", std::string(text, static_cast<size_t>(length))));
}

std::optional<MPI_Datatype> native_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return MPI_FLOAT;
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kLong:
      return MPI_INT64_T;
    case at::kInt:
      return MPI_INT32_T;
    case at::kByte:
      return MPI_UINT8_T;
    default:
      return std::nullopt;
  }
}

std::vector<int> to_int(const Counts& counts) {
  std::vector<int> result;
  for (const int64_t count : counts) {
    AIFS_CHECK(count <= INT_MAX, count, " rows are too many for one rank");
    result.push_back(static_cast<int>(count));
  }
  return result;
}

std::vector<int> starts_as_int(const Counts& counts) {
  Counts starts = starts_of(counts);
  starts.pop_back();
  return to_int(starts);
}

// A row of a tensor as one MPI datum.
class RowType {
 public:
  explicit RowType(const at::Tensor& rows) : count_(rows.dim() == 0 ? 1 : rows.size(0)) {
    int64_t bytes = rows.element_size();
    for (int64_t d = 1; d < rows.dim(); ++d)
      bytes *= rows.size(d);
    AIFS_CHECK(bytes <= INT_MAX, "rows of ", bytes, " bytes are too long");
    check_mpi(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type_), "type");
    check_mpi(MPI_Type_commit(&type_), "type");
  }
  ~RowType() { MPI_Type_free(&type_); }
  RowType(const RowType&) = delete;
  RowType& operator=(const RowType&) = delete;
  MPI_Datatype get() const { return type_; }
  // Counts the rows it was made for.
  int count() const { return to_int({count_})[0]; }

 private:
  int64_t count_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, bool owned, std::shared_ptr<OperationWatch> watch)
      : comm_(comm), owned_(owned), watch_(std::move(watch)) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_rank(comm_, &rank_), "rank");
    check_mpi(MPI_Comm_size(comm_, &size_), "size");
  }
  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    finish_sending();
    if (owned_) MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* backend() const override { return "MPI"; }

  void all_reduce(const at::Tensor& tensor, Reduction reduction) override {
    const OperationWatch::Scope watched(*watch_, "all-reduce");
    require(tensor, "all-reduce");
    const auto type = native_type(tensor.scalar_type());
    if (!type) {  // 16-bit types travel as fp32
      const at::Tensor wide = tensor.detach().to(at::kFloat).contiguous();
      reduce_native(wide, MPI_FLOAT, reduction);
      tensor.detach().copy_(wide);
      return;
    }
    reduce_native(tensor, *type, reduction);
  }

  void broadcast(const at::Tensor& tensor, int root) override {
    const OperationWatch::Scope watched(*watch_, "broadcast");
    require(tensor, "broadcast");
    auto* bytes = static_cast<char*>(tensor.data_ptr());
    const auto total = static_cast<int64_t>(tensor.nbytes());
    for (int64_t done = 0; done < total; done += kMostElements) {
      check_mpi(MPI_Bcast(bytes + done, static_cast<int>(std::min(kMostElements, total - done)),
                          MPI_BYTE, root, comm_),
                "broadcast");
    }
  }

  void all_gather_rows_into(const at::Tensor& all, const at::Tensor& own,
                            const Counts& counts) override {
    const OperationWatch::Scope watched(*watch_, "all-gather");
    check_own_rows(*this, counts, own, "all-gather");
    require(all, "all-gather");
    check_counts(*this, counts, all, "all-gather");
    const at::Tensor rows = own.detach().contiguous();
    const RowType type(rows);
    const auto before = starts_of(counts)[static_cast<size_t>(rank_)];
    const bool in_place = rows.const_data_ptr() == all.narrow(0, before, 0).const_data_ptr();
    check_mpi(
        MPI_Allgatherv(in_place ? MPI_IN_PLACE : rows.const_data_ptr(),
                       static_cast<int>(rows.size(0)), type.get(), all.data_ptr(),
                       to_int(counts).data(), starts_as_int(counts).data(), type.get(), comm_),
        "all-gather");
  }

  // The parts travel to their owner, which adds them in rank order: exact and the same every time.
  void reduce_scatter_rows_into(const at::Tensor& own, const at::Tensor& all,
                                const Counts& counts) override {
    check_counts(*this, counts, all, "reduce-scatter");
    check_own_rows(*this, counts, own, "reduce-scatter");
    const Counts equal(static_cast<size_t>(size_), own.size(0));
    own.detach().copy_(
        combine_in_rank_order(all_to_all_rows(all, counts, equal), size_, Reduction::kSum));
  }

  void all_to_all_rows_into(const at::Tensor& received, const at::Tensor& given,
                            const Counts& send_counts, const Counts& recv_counts) override {
    const OperationWatch::Scope watched(*watch_, "all-to-all");
    check_counts(*this, send_counts, given, "all-to-all");
    check_counts(*this, recv_counts, received, "all-to-all");
    require(received, "all-to-all");
    const at::Tensor rows = given.detach().contiguous();
    const RowType type(rows);
    check_mpi(MPI_Alltoallv(rows.const_data_ptr(), to_int(send_counts).data(),
                            starts_as_int(send_counts).data(), type.get(), received.data_ptr(),
                            to_int(recv_counts).data(), starts_as_int(recv_counts).data(),
                            type.get(), comm_),
              "all-to-all");
  }

  void send(const at::Tensor& tensor, int to) override {
    std::erase_if(sending_, [](Sending& sending) {
      int done = 0;
      check_mpi(MPI_Test(&sending.request, &done, MPI_STATUS_IGNORE), "send");
      return done != 0;
    });
    Sending sending{MPI_REQUEST_NULL, tensor.detach().contiguous()};
    const RowType type(sending.tensor);
    check_mpi(MPI_Isend(sending.tensor.const_data_ptr(), type.count(), type.get(), to, kTag, comm_,
                        &sending.request),
              "send");
    sending_.push_back(std::move(sending));
  }

  void receive(const at::Tensor& tensor, int from) override {
    const OperationWatch::Scope watched(*watch_, "receive");
    require(tensor, "receive");
    const RowType type(tensor);
    check_mpi(
        MPI_Recv(tensor.data_ptr(), type.count(), type.get(), from, kTag, comm_, MPI_STATUS_IGNORE),
        "receive");
  }

  void barrier() override {
    const OperationWatch::Scope watched(*watch_, "barrier");
    check_mpi(MPI_Barrier(comm_), "barrier");
  }

  std::unique_ptr<Communicator> split(int colour) override {
    const OperationWatch::Scope watched(*watch_, "split");
    MPI_Comm part = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split(comm_, colour, rank_, &part), "split");
    return std::make_unique<MpiCommunicator>(part, true, watch_);
  }

  std::shared_ptr<void> at_work(const char* work) override {
    return std::make_shared<OperationWatch::Work>(*watch_, work);
  }
  void moves_on(const char* work) override { watch_->note_progress(work); }
  void abort(int exit_code) override { MPI_Abort(comm_, exit_code); }

 private:
  static constexpr int kTag = 0;

  // A tensor that may not have left yet.
  struct Sending {
    MPI_Request request;
    at::Tensor tensor;
  };

  // Waits: what is still under way is read from its memory. After a failure nobody may want it any
  // more.
  void finish_sending() {
    if (sending_.empty()) return;
    if (std::uncaught_exceptions() > 0) {
      for (Sending& sending : sending_)
        MPI_Request_free(&sending.request);
      new std::vector<Sending>(std::move(sending_));  // never deleted
      return;
    }
    const OperationWatch::Scope watched(*watch_, "send");
    for (Sending& sending : sending_)
      MPI_Wait(&sending.request, MPI_STATUS_IGNORE);
  }

  void require(const at::Tensor& tensor, const char* operation) const {
    AIFS_CHECK(tensor.is_cpu() && tensor.is_contiguous(), operation, " on rank ", rank_,
               " needs a contiguous CPU tensor");
  }

  void reduce_native(const at::Tensor& tensor, MPI_Datatype type, Reduction reduction) {
    const MPI_Op operation = reduction == Reduction::kSum ? MPI_SUM : MPI_MAX;
    auto* bytes = static_cast<char*>(tensor.data_ptr());
    for (int64_t done = 0; done < tensor.numel(); done += kMostElements) {
      const auto count = static_cast<int>(std::min(kMostElements, tensor.numel() - done));
      check_mpi(MPI_Allreduce(MPI_IN_PLACE, bytes + done * tensor.element_size(), count, type,
                              operation, comm_),
                "all-reduce");
    }
  }

  MPI_Comm comm_;
  bool owned_;
  std::shared_ptr<OperationWatch> watch_;
  int rank_ = 0, size_ = 1;
  std::vector<Sending> sending_;
};

}  // namespace

bool may_join_by_pmi2() {
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
  return false;  // since this version there is PMIx only
#elif defined(OPEN_MPI)
  Dl_info library{};
  void* const inside = ::dlsym(RTLD_DEFAULT, "MPI_Init_thread");
  return !inside || ::dladdr(inside, &library) == 0 || may_read_pmi2(library.dli_fname);
#else
  return true;
#endif
}

void initialize_mpi() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "initialisation");
  if (provided < MPI_THREAD_MULTIPLE) {
    throw Error("this MPI cannot be called from more than one thread",
                "use an MPI library built with thread support");
  }
}

void finalize_mpi() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Finalize();
}

std::unique_ptr<Communicator> make_mpi_world(std::shared_ptr<OperationWatch> watch) {
  return std::make_unique<MpiCommunicator>(MPI_COMM_WORLD, false, std::move(watch));
}

}  // namespace aifs::parallel
