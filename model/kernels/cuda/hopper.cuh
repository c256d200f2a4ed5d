// SPDX-License-Identifier: Apache-2.0
// The instructions of Hopper cards (sm_90a) that C++ has no words for: barriers in shared memory,
// bulk copies, products of whole warpgroups. See the PTX manual under the names used here.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace aifs::model::cuda::hopper {

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// mbarrier: counts arrivals and bytes; its phase flips when all have come.
struct Barrier {
  uint64_t word;

  __device__ void init(int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&word)),
                 "r"(arrivals));
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&word))
                 : "memory");
  }
  __device__ void arrive_and_expect(int bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&word)),
        "r"(bytes)
        : "memory");
  }
  // Until the phase of this parity is over. Without a trap for what would hang: a kernel that may
  // trap gets no registers from take_registers().
  __device__ void wait(uint32_t parity) {
    uint32_t done = 0;
    while (!done) {
      asm volatile(
          "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(shared_address(&word)), "r"(parity)
          : "memory");
    }
  }
};

__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Registers of a thread from here on, for all four warps of a warpgroup: fewer than it was launched
// with, and more, which waits until others have given theirs.
template <int kRegisters>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// A box of a matrix at (column, row) into shared memory; counts as bytes at `barrier`.
__device__ inline void copy_box(void* to, const CUtensorMap& map, Barrier& barrier, int column,
                                int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(column), "r"(row)
      : "memory");
}

// Copies a box of three dimensions, of one layer.
__device__ inline void copy_box3(void* to, const CUtensorMap& map, Barrier& barrier, int column,
                                 int row, int layer) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(column), "r"(row), "r"(layer)
      : "memory");
}

// Copies `bytes` of memory as they are; both ends and their number are multiples of 16.
__device__ inline void copy_bytes(void* to, const void* from, Barrier& barrier, int bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(shared_address(&barrier)), "r"(bytes)
      : "memory");
}

// Copies a box of five dimensions, at (column, 0, 0, 0, group).
__device__ inline void copy_box5(void* to, const CUtensorMap& map, Barrier& barrier, int column,
                                 int group) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %4, %4, %5}], [%2];" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(column), "r"(0), "r"(group)
      : "memory");
}

// copy_box() to the same place of all blocks of the cluster in `blocks`, and to a barrier of each.
__device__ inline void copy_box_to_all(void* to, const CUtensorMap& map, Barrier& barrier,
                                       int column, int row, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(shared_address(&barrier)), "r"(column), "r"(row), "h"(blocks)
      : "memory");
}

// Between the blocks of a cluster.
__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// Returns where the thing that is here at `p` is in the block of this rank.
__device__ inline uint32_t address_of_peer(const void* p, uint32_t rank) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(p)), "r"(rank));
  return there;
}
// Behind what the warp has read of its own shared memory; a release to the whole cluster would also
// wait until all its stores have reached the card's memory.
__device__ inline void arrive_at_peer(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// 16 bytes of shared memory.
__device__ inline uint4 load_shared(const void* from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(shared_address(from))
               : "memory");
  return v;
}

// Two neighbours in shared memory.
__device__ inline float2 load_pair(const float* from) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
               : "=f"(v.x), "=f"(v.y)
               : "r"(shared_address(from))
               : "memory");
  return v;
}

// Makes what a thread wrote to shared memory visible to products.
__device__ inline void publish_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The operands of products: rows of 128 bytes in the 128-byte swizzle, eight of them together; `to`
// 1024-byte aligned. 32 bytes further along the rows is 2 more, 1024 bytes further in memory 64.
// What is here is the lower half, the upper is that of all.
__device__ inline uint32_t operand(const void* to) {
  return ((shared_address(to) & 0x3ffff) >> 4) | (1u << 16);
}
constexpr uint32_t kUpperOperand = (1024 / 16) | (1u << 30);  // eight rows apart, the swizzle

__device__ inline void fence_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Returns an operand of columns: pieces of 64 columns and 64 rows, one after another; 16 rows
// further is 128 more.
__device__ inline uint32_t column_operand(const void* to) {
  constexpr uint32_t kPieces = 64 * 128 / 16;
  return operand(to) + ((kPieces - 1) << 16);
}

#define AIFS_FLOATS4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define AIFS_FLOATS16(d, i) \
  AIFS_FLOATS4(d, i), AIFS_FLOATS4(d, i + 4), AIFS_FLOATS4(d, i + 8), AIFS_FLOATS4(d, i + 12)

// d (64 x 128, over a warpgroup) = a (64 x 16) b, plus d if `add`; b is (128 x 16)^T by operand()
// or, kColumns, 16 x 128 by column_operand().
// d[4 j + 2 h + i] of lane l of warp w is row 16 w + l / 4 + 8 h, column 8 j + 2 (l % 4) + i.
template <bool kColumns>
__device__ void multiply(float (&d)[64], uint32_t a, uint32_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %66, 0;\n"
      "mov.b64 a, {%64, %68};\nmov.b64 b, {%65, %68};\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
      "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,"
      "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
      "a, b, p, 1, 1, 0, %67;\n}"
      : AIFS_FLOATS16(d, 0), AIFS_FLOATS16(d, 16), AIFS_FLOATS16(d, 32), AIFS_FLOATS16(d, 48)
      : "r"(a), "r"(b), "r"(add), "n"(kColumns ? 1 : 0), "n"(kUpperOperand));
}

// Does so with 256 columns: j up to 31.
template <bool kColumns>
__device__ void multiply(float (&d)[128], uint32_t a, uint32_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %130, 0;\n"
      "mov.b64 a, {%128, %132};\nmov.b64 b, {%129, %132};\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,"
      "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
      "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,"
      "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,"
      "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, "
      "a, b, p, 1, 1, 0, %131;\n}"
      : AIFS_FLOATS16(d, 0), AIFS_FLOATS16(d, 16), AIFS_FLOATS16(d, 32), AIFS_FLOATS16(d, 48),
        AIFS_FLOATS16(d, 64), AIFS_FLOATS16(d, 80), AIFS_FLOATS16(d, 96), AIFS_FLOATS16(d, 112)
      : "r"(a), "r"(b), "r"(add), "n"(kColumns ? 1 : 0), "n"(kUpperOperand));
}

// Does so with 64 columns and `a` in registers: of lane l of warp w, pairs of columns 2 (l % 4) of
// row 16 w + l / 4, of the row eight below, and of both eight columns further.
template <bool kColumns>
__device__ void multiply(float (&d)[32], const uint32_t (&a)[4], uint32_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\n.reg .b64 b;\nsetp.ne.b32 p, %37, 0;\n"
      "mov.b64 b, {%36, %39};\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "{%32,%33,%34,%35}, b, p, 1, 1, %38;\n}"
      : AIFS_FLOATS16(d, 0), AIFS_FLOATS16(d, 16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(add), "n"(kColumns ? 1 : 0),
        "n"(kUpperOperand));
}

#undef AIFS_FLOATS16
#undef AIFS_FLOATS4

// Four 8 x 8 matrices of 16 bits as products hold them; lanes 8 i ... 8 i + 7 say where the rows of
// the i-th are.
__device__ inline void store_matrices(void* row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
}

// Reads four of them, as store_matrices() writes them.
__device__ inline void load_matrices(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

// Keeps the compiler from moving uses of the sums across the products in flight.
template <int kFloats>
__device__ void pin(float (&d)[kFloats]) {
#pragma unroll
  for (float& x : d)
    asm volatile("" : "+f"(x)::"memory");
}

// The compiler no longer knows what was computed of it.
__device__ inline void forget(int& x) {
  asm volatile("" : "+r"(x));
}

}  // namespace aifs::model::cuda::hopper
