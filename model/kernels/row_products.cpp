// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/row_products.h"

#include <ATen/Dispatch.h>

#include "model/kernels/count_work.h"
#include "model/kernels/row_parts.h"

namespace aifs::model {

namespace {

template <class T>
void multiply_rows(const at::Tensor& out, const at::Tensor& x, const at::Tensor& b,
                   const at::Tensor& addend) {
  const cpu::Panels<T> panels(b);
  const int64_t in = x.size(1), width = b.size(1);
  const cpu::Parts parts(x.size(0));
  at::parallel_for(0, parts.count(), 1, [&](int64_t first, int64_t last) {
    cpu::Room<T> room(1, panels.width);
    const auto multiply = [&](int64_t row, int64_t count) {
      T* to = out.data_ptr<T>() + row * width;
      T* padded = panels.width == width ? to : room[0];
      if (addend.defined()) {
        cpu::gather(cpu::Gather<T>{.rows = count,
                                   .width = width,
                                   .a = addend.const_data_ptr<T>() + row * width,
                                   .out = padded,
                                   .out_row = panels.width});
      }
      panels.multiply(count, x.const_data_ptr<T>() + row * in, in, padded, panels.width,
                      {nullptr, addend.defined()});
      if (padded != to) cpu::copy_rows(padded, panels.width, to, width, width, count);
    };
    for (int64_t part = first; part < last; ++part)
      parts.for_blocks(part, multiply);
  });
}

template <class T>
void add_outer_rows(const at::Tensor& sum, const at::Tensor& d, const at::Tensor& x) {
  const int64_t out = d.size(1), in = x.size(1), wide = cpu::padded<T>(in);
  const cpu::Parts parts(x.size(0));
  cpu::PartialSums<T> sums;
  sums.add(sum);
  sums.start(parts.count());
  at::parallel_for(0, parts.count(), 1, [&](int64_t first, int64_t last) {
    cpu::Room<T> room(1, wide);
    for (int64_t part = first; part < last; ++part) {
      T* part_sums = sums.part(part);
      parts.for_blocks(part, [&](int64_t row, int64_t count) {
        const T* rows = x.const_data_ptr<T>() + row * in;
        if (wide != in) {
          cpu::copy_rows(rows, in, room[0], wide, in, count);
          rows = room[0];
        }
        cpu::add_outer_block<T>(count, {d.const_data_ptr<T>() + row * out, out}, out, {rows, wide},
                                part_sums);
      });
    }
  });
  sums.finish();
}

// Counts the operations of a product of rows that is `width` wide.
double operations_of(const at::Tensor& rows, int64_t width) {
  return 2.0 * static_cast<double>(rows.numel()) * static_cast<double>(width);
}

}  // namespace

bool row_products_support(const at::Tensor& rows, int64_t widest) {
  const at::ScalarType type = rows.scalar_type();
  return rows.is_cpu() && (type == at::kFloat || type == at::kDouble) &&
         widest <= kWidestRowProduct;
}

at::Tensor product_rows(const at::Tensor& x, const at::Tensor& b, const at::Tensor& addend) {
  const at::Tensor rows = x.contiguous(), more = addend.defined() ? addend.contiguous() : addend;
  const at::Tensor out = at::empty({x.size(0), b.size(1)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "product_rows",
                             [&] { multiply_rows<scalar_t>(out, rows, b, more); });
  count_work("product of rows", {rows, b, more, out}, operations_of(rows, b.size(1)));
  return out;
}

void add_outer_product(const at::Tensor& sum, const at::Tensor& d, const at::Tensor& x) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "add_outer_product",
                             [&] { add_outer_rows<scalar_t>(sum, d, x); });
  count_work("gradient of a weight", {d, x, sum}, operations_of(x, d.size(1)));
}

}  // namespace aifs::model
