#include "data/audio/read_audio.h"

#include <samplerate.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "core/error.h"
#include "data/audio/byte_range.h"
#include "data/audio/container_check.h"
#include "data/features.h"

namespace tactus {
namespace {

constexpr int64_t kBlockFrames = 1 << 14;
constexpr int kMaxChannels = 64;

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using Sound = std::unique_ptr<SNDFILE, CloseSound>;

/// The library's view of a ByteRange. A failed read ends the file for it; the error is thrown after the call.
struct VirtualFile {
  const ByteRange& range;
  int64_t position = 0;
  std::string error;

  static VirtualFile& of(void* user) { return *static_cast<VirtualFile*>(user); }
  static sf_count_t length(void* user) { return of(user).range.size(); }
  static sf_count_t tell(void* user) { return of(user).position; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    VirtualFile& f = of(user);
    const int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f.position : f.range.size();
    f.position = std::clamp<int64_t>(base + offset, 0, f.range.size());
    return f.position;
  }
  static sf_count_t read(void* to, sf_count_t count, void* user) {
    VirtualFile& f = of(user);
    try {
      const int64_t got = f.range.read(to, count, f.position);
      f.position += got;
      return got;
    } catch (const DataError& e) {
      f.error = e.what();
      return 0;
    }
  }
};

std::string without_final_stop(std::string text) {
  while (!text.empty() && (text.back() == '.' || text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// Formats whose samples are defined by the file alone, or by one decoder that everybody uses.
bool is_supported(int format) {
  const int codec = format & SF_FORMAT_SUBMASK;
  switch (format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_WAV:
    case SF_FORMAT_WAVEX:
    case SF_FORMAT_RF64:
      for (int known : {SF_FORMAT_PCM_U8, SF_FORMAT_PCM_16, SF_FORMAT_PCM_24, SF_FORMAT_PCM_32, SF_FORMAT_FLOAT,
                        SF_FORMAT_DOUBLE, SF_FORMAT_ULAW, SF_FORMAT_ALAW}) {
        if (codec == known) return true;
      }
      return false;
    case SF_FORMAT_FLAC:
      return true;
    case SF_FORMAT_OGG:
      return codec == SF_FORMAT_VORBIS || codec == SF_FORMAT_OPUS;
    default:
      return false;
  }
}

std::string format_name(int format) {
  auto name = [](int code) {
    SF_FORMAT_INFO info{};
    info.format = code;
    return sf_command(nullptr, SFC_GET_FORMAT_INFO, &info, sizeof info) == 0 && info.name != nullptr
               ? std::string(info.name)
               : "an unknown format";
  };
  return name(format & SF_FORMAT_TYPEMASK) + ", " + name(format & SF_FORMAT_SUBMASK);
}

void check_format(const SF_INFO& info, const std::string& name) {
  if (info.channels < 1 || info.channels > kMaxChannels || info.samplerate < 1000 || info.samplerate > 768000) {
    throw DataError(name + ": " + std::to_string(info.channels) + " channels at " + std::to_string(info.samplerate) +
                    " Hz; expected 1 to 64 channels at 1 to 768 kHz");
  }
  if (!is_supported(info.format)) {
    throw DataError(name + ": " + format_name(info.format) +
                    " is not read, because decoders differ; convert it to wav, flac or ogg (Vorbis, Opus)");
  }
}

/// First sample of a part and how many; all of the file for a whole one.
struct Part {
  int64_t begin = 0, count = SF_COUNT_MAX;
};

Part part_of(const MediaRef& media, const SF_INFO& info, const std::string& name) {
  Part part;
  const double rate = info.samplerate;
  if (media.start_seconds > 0) part.begin = std::llround(media.start_seconds * rate);
  if (media.duration_seconds >= 0) part.count = std::llround(media.duration_seconds * rate);
  if (part.begin > 0 && part.begin >= info.frames) {
    char seconds[48];
    std::snprintf(seconds, sizeof seconds, "%.3f", static_cast<double>(info.frames) / rate);
    throw DataError(name + ": begins beyond the end of the recording at " + seconds + " s");
  }
  part.count = std::min(part.count, info.frames - part.begin);
  return part;
}

/// The frames of a part, channels averaged, scaled to the range of 16-bit integers.
std::vector<float> read_mono(SNDFILE* file, const SF_INFO& info, const Part& part, const std::string& name) {
  if (part.begin > 0 && sf_seek(file, part.begin, SEEK_SET) != part.begin)
    throw DataError(name + ": cannot go to its first sample: " + without_final_stop(sf_strerror(file)));
  std::vector<float> mono;
  // The header's frame count is not trusted with memory: it grows with what was really read.
  std::vector<float> block(static_cast<size_t>(kBlockFrames) * info.channels);
  const double scale = 32768.0 / info.channels;
  for (int64_t left = part.count; left > 0;) {
    const sf_count_t got = sf_readf_float(file, block.data(), std::min(left, kBlockFrames));
    if (got <= 0) break;
    left -= got;
    for (sf_count_t i = 0; i < got; ++i) {
      double sum = 0;
      for (int c = 0; c < info.channels; ++c) sum += block[static_cast<size_t>(i) * info.channels + c];
      if (!std::isfinite(sum))
        throw DataError(name + ": sample " + std::to_string(mono.size()) + " is not a finite number");
      mono.push_back(static_cast<float>(sum * scale));
    }
  }
  if (sf_error(file) != SF_ERR_NO_ERROR) {
    throw DataError(name + ": damaged after " + std::to_string(mono.size()) +
                    " samples: " + without_final_stop(sf_strerror(file)));
  }
  // Ogg files without their last page have no length at all; libsndfile then reports the largest number.
  if (static_cast<int64_t>(mono.size()) < part.count) {
    const std::string promised = info.frames == SF_COUNT_MAX ? "more" : std::to_string(part.count);
    throw DataError(name + ": cut short: " + std::to_string(mono.size()) + " samples, expected " + promised);
  }
  return mono;
}

std::vector<float> resample(const std::vector<float>& samples, double ratio, const std::string& name) {
  if (!src_is_valid_ratio(ratio)) throw DataError(name + ": cannot resample by " + std::to_string(ratio));
  std::vector<float> out(static_cast<size_t>(std::ceil(static_cast<double>(samples.size()) * ratio)) + 16);
  SRC_DATA data{};
  data.data_in = samples.data();
  data.input_frames = static_cast<long>(samples.size());
  data.data_out = out.data();
  data.output_frames = static_cast<long>(out.size());
  data.src_ratio = ratio;
  if (int code = src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1); code != 0)
    throw DataError(name + ": cannot resample: " + src_strerror(code));
  out.resize(static_cast<size_t>(data.output_frames_gen));
  return out;
}

}  // namespace

std::vector<float> read_audio(const MediaRef& media) {
  const ByteRange range(media);
  check_riff_complete(range);
  VirtualFile view{range, 0, ""};
  SF_VIRTUAL_IO io{VirtualFile::length, VirtualFile::seek, VirtualFile::read, nullptr, VirtualFile::tell};
  SF_INFO info{};
  const Sound file(sf_open_virtual(&io, SFM_READ, &info, &view));
  if (!view.error.empty()) throw DataError(view.error);
  if (!file) throw DataError(range.name() + ": cannot read as audio: " + without_final_stop(sf_strerror(nullptr)));
  check_format(info, range.name());
  const std::vector<float> samples = read_mono(file.get(), info, part_of(media, info, range.name()), range.name());
  if (!view.error.empty()) throw DataError(view.error);
  const double ratio = static_cast<double>(kSampleRate) / (info.samplerate * media.speed);
  return ratio == 1 || samples.empty() ? samples : resample(samples, ratio, range.name());
}

std::vector<float> read_audio(const std::string& path) {
  MediaRef media;
  media.kind = MediaRef::Kind::audio, media.path = path;
  return read_audio(media);
}

}  // namespace tactus
