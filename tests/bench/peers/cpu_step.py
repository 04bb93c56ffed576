#!/usr/bin/env python3
"""Training steps of the quickstart's MTLA model on the CPU: Tactus against the same model in PyTorch, in one run.

PyTorch pads each batch to its longest utterance, as its modules want; MTLA is computed as the authors' module does it, with all
T x T scores and a mask. Both see batches of the same number of frames. Needs PyTorch, PyYAML and runs/quickstart/corpus.h5.
usage: python3 tests/bench/peers/cpu_step.py --tactus build/tactus --threads 2
"""
import argparse
import json
import math
import random
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml


def merged(path):
    """A configuration with its `base:` below it."""
    with open(path) as f:
        config = yaml.safe_load(f)
    base = config.pop("base", None)
    if base is None:
        return config

    def merge(low, high):
        out = dict(low)
        for key, value in high.items():
            out[key] = merge(low[key], value) if isinstance(value, dict) and key in low else value
        return out

    return merge(merged(path.rsplit("/", 1)[0] + "/" + base), config)


def rope(x, positions):
    """Neighbouring pairs of the last axis turned by position * theta^(-2i/d); positions [batch, rows]."""
    d = x.shape[-1]
    angle = positions[..., None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
    while angle.dim() < x.dim():
        angle = angle.unsqueeze(1)
    c, s = angle.cos(), angle.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)


class EncoderLayer(nn.Module):
    def __init__(self, width, options):
        super().__init__()
        self.heads, self.p = options["heads"], options["dropout"]
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, options["ffn_dim"]), nn.Linear(options["ffn_dim"], width)

    def forward(self, x, mask):
        b, t, e = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, t, e)
        x = x + F.dropout(self.out(a), self.p, self.training)
        return x + F.dropout(self.fc2(F.relu(self.fc1(self.norm2(x)))), self.p, self.training)


class Mtla(nn.Module):
    def __init__(self, width, o):
        super().__init__()
        self.h, self.r, self.dn, self.dr, self.dv = (o[k] for k in (
            "heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
        self.s = o["stride"]
        self.wq = nn.Linear(width, self.h * (self.dn + self.dr), bias=False)
        self.wkv_a, self.norm = nn.Linear(width, self.r + self.dr, bias=False), nn.LayerNorm(self.r)
        self.wkv_b = nn.Linear(self.r, self.h * (self.dn + self.dv), bias=False)
        self.wo = nn.Linear(self.h * self.dv, width, bias=False)
        self.fc_c, self.fc_p = nn.Linear(self.r, self.r // 4), nn.Linear(self.r, self.r // 4)

    def forward(self, own, prompt, key_mask):
        x = torch.cat((prompt, own), 1)
        b, t, _ = x.shape
        n, index = own.shape[1], torch.arange(t)
        q = self.wq(own).view(b, n, self.h, -1).transpose(1, 2)
        positions = index.float().expand(b, t)
        q_nope, q_rope = q[..., :self.dn], rope(q[..., self.dn:], positions[:, t - n:])
        kv = self.wkv_a(x)
        c, k = self.norm(kv[..., :self.r]), rope(kv[..., self.r:], positions)
        angle = (index // self.s)[:, None] * 10000.0 ** (-torch.arange(0, self.r, 2) / self.r)
        code = torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)
        gate = torch.sigmoid(self.fc_c(code) @ self.fc_p(c).transpose(1, 2))
        same = (index[:, None] // self.s == index // self.s) & (index[:, None] >= index)
        c = (gate * same) @ c
        visible = (index[:, None] == index) | ((index <= index[:, None]) & ((index + 1) % self.s == 0))
        w = self.wkv_b.weight.view(self.h, self.dn + self.dv, self.r)
        absorbed = torch.einsum("bhnd,hdr->bhnr", q_nope, w[:, :self.dn])
        scores = (absorbed @ c[:, None].transpose(2, 3) + q_rope @ k[:, None].transpose(2, 3)) * (self.dn + self.dr) ** -0.5
        scores = scores.masked_fill(~(visible[t - n:] & key_mask[:, None, None, :]), -1e9)
        mixed = torch.softmax(scores, -1) @ c[:, None]
        return self.wo(torch.einsum("bhnr,hdr->bnhd", mixed, w[:, self.dn:]).reshape(b, n, -1))


class DecoderLayer(nn.Module):
    def __init__(self, width, options):
        super().__init__()
        self.p, self.attention = options["dropout"], Mtla(width, options["attention"])
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, options["ffn_dim"]), nn.Linear(options["ffn_dim"], width)

    def forward(self, y, prompt, key_mask):
        a = self.attention(self.norm1(y), prompt, key_mask)
        h = self.norm1(y + F.dropout(a, self.p, self.training))
        return self.norm2(h + F.dropout(self.fc2(F.relu(self.fc1(h))), self.p, self.training))


class Model(nn.Module):
    def __init__(self, m, vocabulary, ctc_vocabulary):
        super().__init__()
        w, e, d = m["width"], m["encoder"], m["decoder"]
        self.w, self.p = w, e["dropout"]
        self.conv1 = nn.Conv1d(80, e["conv_channels"], 5, 2, 2)
        self.conv2 = nn.Conv1d(e["conv_channels"] // 2, 2 * w, 5, 2, 2)
        self.encoder = nn.ModuleList(EncoderLayer(w, e) for _ in range(e["layers"]))
        self.norm, self.ctc = nn.LayerNorm(w), nn.Linear(w, ctc_vocabulary)
        self.p1, self.p2 = nn.Linear(w, d["projector_dim"]), nn.Linear(d["projector_dim"], w)
        self.embed = nn.Embedding(vocabulary, w)
        self.decoder = nn.ModuleList(DecoderLayer(w, d) for _ in range(d["layers"]))
        self.final, self.output = nn.LayerNorm(w), nn.Linear(w, vocabulary, bias=False)

    def forward(self, b):
        x = F.glu(self.conv2(F.glu(self.conv1(b["features"]), 1)), 1).transpose(1, 2)
        t = x.shape[1]
        angle = torch.arange(2, t + 2)[:, None] * torch.exp(torch.arange(self.w // 2) * -(math.log(10000.0) / (self.w // 2 - 1)))
        x = F.dropout(x * self.w ** 0.5 + torch.cat((angle.sin(), angle.cos()), 1), self.p, self.training)
        real = torch.arange(t) < b["rows"][:, None]
        for layer in self.encoder:
            x = layer(x, real[:, None, None, :])
        x = self.norm(x)
        prompt, y = self.p2(F.relu(self.p1(x))), self.embed(b["inputs"]) * self.w ** 0.5
        key_mask = torch.cat((real, torch.ones_like(b["inputs"], dtype=torch.bool)), 1)
        for layer in self.decoder:
            y = layer(y, prompt, key_mask)
        logits = self.output(self.final(y))
        loss = F.cross_entropy(logits.flatten(0, 1), b["targets"].flatten(), ignore_index=-1, label_smoothing=0.1, reduction="sum")
        log_p = self.ctc(x).log_softmax(-1).transpose(0, 1)
        return loss + 0.5 * F.ctc_loss(log_p, b["labels"], b["rows"], b["label_lengths"], reduction="sum", zero_infinity=True)


def batches(config, vocabulary, ctc_vocabulary):
    with open("data/quickstart/train.tsv") as f:
        rows = [line.rstrip("\n").split("\t") for line in f][1:]
    random.Random(1).shuffle(rows)
    limit, cur, out = config["data"]["batches"]["max_frames"], [], []
    for r in rows:
        if cur and sum(int(c[2]) for c in cur) + int(r[2]) > limit:
            out.append(cur)
            cur = []
        cur.append(r)
    for batch in out:
        frames = torch.tensor([int(r[2]) for r in batch])
        targets = [2 + round(1.8 * len(r[4].split())) for r in batch]
        labels = torch.tensor([min(2 + round(1.8 * len(r[3].split())), int(r[2]) // 5) for r in batch])
        ids = torch.randint(4, vocabulary, (len(batch), max(targets)))
        wanted = torch.where(torch.arange(max(targets)) < torch.tensor(targets)[:, None], ids, -1)
        yield dict(features=torch.randn(len(batch), 80, int(frames.max())), rows=((frames + 1) // 2 + 1) // 2, inputs=ids,
                   targets=wanted, tokens=sum(targets), labels=torch.randint(4, ctc_vocabulary, (len(batch), int(labels.max()))),
                   label_lengths=labels, frames=int(frames.sum()))


def torch_speed(config, updates, warmup):
    torch.manual_seed(0)
    model = Model(config["model"], 230, 120).train()
    adam = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98))
    data = list(batches(config, 230, 120))
    begin = frames = 0
    for i in range(warmup + updates):
        if i == warmup:
            begin, frames = time.perf_counter(), 0
        b = data[i % len(data)]
        adam.zero_grad(set_to_none=True)
        (model(b) / b["tokens"]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        adam.step()
        frames += b["frames"]
    return frames / (time.perf_counter() - begin)


def tactus_speed(binary, config, threads, updates, warmup):
    with tempfile.TemporaryDirectory() as run:
        command = [binary, "train", config, "--run", run, "--device", "cpu", "--set", f"threads={threads}", "--set",
                   f"train.max_updates={warmup + updates}", "--set", f"train.log_every={warmup}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(run + "/log.jsonl") as f:
            lines = [json.loads(line) for line in f]
    return statistics.median(l["timing"]["frames_per_second"] for l in lines if l["type"] == "train" and l["update"] > warmup)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tactus", default="build/tactus")
    parser.add_argument("--config", default="configs/quickstart/mtla.yaml")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--updates", type=int, default=80)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    config, ours, theirs = merged(a.config), [], []
    for _ in range(3):
        theirs.append(torch_speed(config, a.updates, 20))
        ours.append(tactus_speed(a.tactus, a.config, a.threads, a.updates, 20))
    x, y = statistics.median(ours), statistics.median(theirs)
    print(json.dumps(dict(threads=a.threads, torch=torch.__version__, tactus_frames_per_s=round(x), torch_frames_per_s=round(y),
                          ratio=round(x / y, 3), all_tactus=[round(v) for v in ours], all_torch=[round(v) for v in theirs])))


if __name__ == "__main__":
    main()
