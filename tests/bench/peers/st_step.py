#!/usr/bin/env python3
"""Training steps of the speech translation model on one GPU: Tactus against PyTorch, one after the other in one run.

PyTorch computes the same model with plain multi-head attention as well as it can: packed rows, variable-length flash attention,
fused Adam, bf16 autocast, eager and with the pointwise parts compiled. Batches have the lengths that `tactus bench train` made up.
Needs PyTorch 2.10 or later.
usage: python3 tests/bench/peers/st_step.py --tactus build/tactus [--attention mha,mtla] [--json FILE]
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention.varlen import varlen_attn

WIDTH, HEADS, HIDDEN, VOCABULARY, DROPOUT = 512, 8, 2048, 8000, 0.15


def run_tactus(program, attention, *extra):
    """The result of `tactus bench train`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        subprocess.run([program, "bench", "train", "--attention", attention, "--json", path, *extra], check=True,
                       stdout=subprocess.DEVNULL)
        with open(path) as f:
            return json.load(f)


def rotate(x, cosine, sine):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)


def feed_forward():
    return nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, WIDTH),
                         nn.Dropout(DROPOUT))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm1, self.norm2, self.ffn = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), feed_forward()

    def before(self, x):
        return self.qkv(self.norm1(x)).view(-1, 3, HEADS, WIDTH // HEADS).unbind(1)

    def after(self, x, attended):
        x = x + F.dropout(self.out(attended.flatten(1)), DROPOUT, self.training)
        return x + self.ffn(self.norm2(x))

    def forward(self, x, batch):
        q, k, v = self.before(x)
        starts, longest = batch["source_starts"], batch["source_longest"]
        return self.after(x, varlen_attn(q, k, v, starts, starts, longest, longest))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm1, self.norm2, self.ffn = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), feed_forward()

    def before(self, y, keys, prompt_rows, own_rows, own_turn, key_turn):
        h = self.norm1(y)
        rows = keys.new_empty(keys.shape[0] + h.shape[0], WIDTH)
        rows = rows.index_copy(0, prompt_rows, keys).index_copy(0, own_rows, h.to(keys.dtype))
        q = self.q(h).view(-1, HEADS, WIDTH // HEADS)
        k, v = self.kv(rows).view(-1, 2, HEADS, WIDTH // HEADS).unbind(1)
        return rotate(q, *own_turn), rotate(k, *key_turn), v

    def after(self, y, attended):
        h = self.norm1(y + F.dropout(self.out(attended.flatten(1)), DROPOUT, self.training))
        return self.norm2(h + self.ffn(h))

    def forward(self, y, prompt, batch):
        q, k, v = self.before(y, prompt, batch["prompt_rows"], batch["own_rows"], batch["own_turn"], batch["key_turn"])
        a = varlen_attn(q, k, v, batch["target_starts"], batch["key_starts"], batch["target_longest"],
                        batch["key_longest"], window_size=(-1, 0))
        return self.after(y, a)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(80, 2 * WIDTH, 5, 2, 2), nn.Conv1d(WIDTH, 2 * WIDTH, 5, 2, 2)
        self.encoder, self.encoder_norm = nn.ModuleList(EncoderLayer() for _ in range(12)), nn.LayerNorm(WIDTH)
        self.projector = nn.Sequential(nn.Linear(WIDTH, WIDTH // 2), nn.ReLU(), nn.Linear(WIDTH // 2, WIDTH))
        self.embedding, self.output = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.decoder, self.norm = nn.ModuleList(DecoderLayer() for _ in range(9)), nn.LayerNorm(WIDTH)

    def forward(self, batch):
        x = F.glu(self.conv2(F.glu(self.conv1(batch["features"]), 1)), 1)
        x = x.transpose(1, 2).flatten(0, 1)[batch["kept"]]
        for layer in self.encoder:
            x = layer(x, batch)
        prompt = self.projector(self.encoder_norm(x))
        y = self.embedding(batch["inputs"]) * WIDTH**0.5
        for layer in self.decoder:
            y = layer(y, prompt, batch)
        return F.cross_entropy(self.output(self.norm(y)).float(), batch["targets"], label_smoothing=0.1)


def make_batch(frames):
    device = "cuda"
    sources = [(n + 3) // 4 for n in frames]
    targets = [max(4, n // 22) for n in frames]
    keys = [s + t for s, t in zip(sources, targets)]
    begins = [0, *itertools.accumulate(keys)]

    def starts(lengths):
        return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32, device=device)

    def turn(positions):
        angle = positions.float()[:, None] / 10000.0 ** (torch.arange(0, 64, 2) / 64)
        return tuple(f(angle)[:, None].to(device, torch.bfloat16) for f in (torch.cos, torch.sin))

    longest = max(sources)
    kept = torch.cat([i * longest + torch.arange(s) for i, s in enumerate(sources)])
    prompt_rows = torch.cat([b + torch.arange(s) for b, s in zip(begins, sources)])
    own_rows = torch.cat([b + s + torch.arange(t) for b, s, t in zip(begins, sources, targets)])
    positions = torch.cat([torch.arange(k) for k in keys])
    tokens = torch.randint(4, VOCABULARY, (2, sum(targets)), device=device)
    return dict(features=torch.randn(len(frames), 80, max(frames), device=device), kept=kept.to(device),
                prompt_rows=prompt_rows.to(device), own_rows=own_rows.to(device), own_turn=turn(positions[own_rows]),
                key_turn=turn(positions), inputs=tokens[0], targets=tokens[1], source_starts=starts(sources),
                target_starts=starts(targets), key_starts=starts(keys), source_longest=longest,
                target_longest=max(targets), key_longest=max(keys))


def run_torch(lengths, compiled, repeats):
    torch.manual_seed(0)
    model = Model().cuda()
    if compiled:
        for layer in [*model.encoder, *model.decoder]:
            layer.before = torch.compile(layer.before, dynamic=True)
            layer.after = torch.compile(layer.after, dynamic=True)
    adam = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), fused=True)
    batches = [make_batch(frames) for frames in lengths]

    def step(batch):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0, foreach=True)
        adam.step()
        adam.zero_grad(set_to_none=True)

    for batch in batches:
        step(batch)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    rates = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for batch in batches:
            step(batch)
        torch.cuda.synchronize()
        rates.append(sum(map(sum, lengths)) / (time.perf_counter() - begin))
    return dict(frames_per_second=statistics.median(rates), memory_peak=torch.cuda.max_memory_allocated())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tactus", default="build/tactus", help="the program")
    parser.add_argument("--attention", default="mha,mtla", help="attentions to run, the first gives the lengths")
    parser.add_argument("--repeats", type=int, default=3, help="passes over the batches; the median counts")
    parser.add_argument("--json", help="file for the results")
    options = parser.parse_args()
    results = {}
    for attention in options.attention.split(","):
        results[f"tactus {attention}"] = run_tactus(options.tactus, attention, "--repeats", str(options.repeats))
    lengths = next(iter(results.values()))["lengths"]
    for name, compiled in (("torch mha, eager", False), ("torch mha, compiled", True)):
        results[name] = run_torch(lengths, compiled, options.repeats)
    peer = results["torch mha, compiled"]["frames_per_second"]
    for name, r in results.items():
        rate = r["frames_per_second"]
        print(f"{name:20} {rate:12,.0f} frames/s  {rate / peer:5.2f} x  {r['memory_peak'] / 2**30:5.2f} GiB")
    if options.json:
        with open(options.json, "w") as f:
            json.dump(results, f)


if __name__ == "__main__":
    main()
