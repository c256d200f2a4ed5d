#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What 8-bit products would bring: the three products of a linear on one edge tensor of a graph
(forward, gradient of the input, gradient of the weight) in bfloat16 and in float8_e4m3 with one
scale a tensor, with and without the passes that turn bfloat16 into 8 bits. Needs PyTorch, Triton
and a Hopper card; prints JSON."""

import argparse
import json

import torch

E4M3_MAX = 448.0


def median_ms(work, repeats=20):
    flush = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    times = []
    for _ in range(repeats + 3):
        flush.zero_()  # a cold cache
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times[3:])[repeats // 2]


@torch.compile
def quantise(x, scale):
    return (x.float() * scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)


@torch.compile
def quantise_both_ways(x, scale):
    """As it lies and transposed: products in 8 bits take operands along their depth only."""
    q = (x.float() * scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
    return q, q.t().contiguous()


def relative_error(a, b):
    return ((a.float() - b.float()).norm() / b.float().norm()).item()


def measure(rows, channels):
    torch.manual_seed(0)
    x = torch.randn(rows, channels, device="cuda", dtype=torch.bfloat16)
    g = torch.randn(rows, channels, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(channels, channels, device="cuda", dtype=torch.bfloat16) / channels**0.5
    scale = lambda t: (E4M3_MAX / t.abs().max().float()).reshape(1)  # known from the step before
    sx, sg, sw = scale(x), scale(g), scale(w)
    qx, qxt = quantise_both_ways(x, sx)
    qg, qgt = quantise_both_ways(g, sg)
    qw, qwt = quantise_both_ways(w, sw)

    def product(a, b_t, sa, sb, out=torch.bfloat16):
        return torch._scaled_mm(a, b_t.t(), 1 / sa, 1 / sb, out_dtype=out)

    forward = product(qx, qw, sx, sw)
    bf16 = {
        "forward": median_ms(lambda: x @ w.t()),
        "input_gradient": median_ms(lambda: g @ w),
        "weight_gradient": median_ms(lambda: g.t() @ x),
    }
    fp8 = {
        "forward": median_ms(lambda: product(qx, qw, sx, sw)),
        "input_gradient": median_ms(lambda: product(qg, qwt, sg, sw)),
        "weight_gradient": median_ms(lambda: product(qgt, qxt, sg, sx, torch.float32)),
    }
    passes = {
        "to_8_bits": median_ms(lambda: quantise(x, sx)),
        "to_8_bits_both_ways": median_ms(lambda: quantise_both_ways(x, sx)),
    }
    reference = x.float() @ w.float().t()
    return {
        "rows": rows, "channels": channels, "bf16_ms": bf16, "fp8_ms": fp8, "passes_ms": passes,
        "bf16_total_ms": sum(bf16.values()),
        "fp8_total_ms": sum(fp8.values()) + 2 * passes["to_8_bits_both_ways"],
        "fp8_total_without_passes_ms": sum(fp8.values()),
        "relative_error_bf16": relative_error(x @ w.t(), reference),
        "relative_error_fp8": relative_error(forward, reference),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=327600)
    parser.add_argument("--channels", type=int, nargs="+", default=[512, 1024])
    options = parser.parse_args()
    cases = [measure(options.rows // 16 * 16, channels) for channels in options.channels]
    print(json.dumps({"card": torch.cuda.get_device_name(), "torch": torch.__version__,
                      "cases": cases}, indent=2))
