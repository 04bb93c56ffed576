"""The speakers of the quickstart corpus and how each program is asked to speak."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Voice:
    """One speaker. `speeds` are words per minute for espeak-ng and duration factors for flite."""

    name: str  # folder and `speaker` column
    program: str  # espeak-ng or flite
    voice: str  # the program's own name for it
    speeds: tuple
    pitches: tuple = ()  # espeak-ng only, 0..99

    def settings(self):
        """All (speed, pitch) pairs of this speaker."""
        return [(speed, pitch) for speed in self.speeds for pitch in self.pitches or (None,)]

    def command(self, text, speed, pitch, wav):
        """The command that speaks `text` into the file `wav`."""
        if self.program == "espeak-ng":
            return ["espeak-ng", "-v", self.voice, "-s", str(speed), "-p", str(pitch), "-w", wav, text]
        return ["flite", "-voice", self.voice, "--setf", f"duration_stretch={speed}", "-t", text, "-o", wav]


def _espeak(name, voice, pitches):
    return Voice(name, "espeak-ng", voice, (235, 260, 285), pitches)


TRAINING_VOICES = (
    _espeak("us_m1", "en-us+m1", (30, 45)),
    _espeak("us_f2", "en-us+f2", (45, 60)),
    _espeak("gb_m3", "en-gb+m3", (35, 50)),
    _espeak("gb_f4", "en-gb+f4", (40, 55)),
    _espeak("rp_f3", "en-gb-x-rp+f3", (45, 60)),
    _espeak("scotland_m7", "en-gb-scotland+m7", (40, 55)),
    Voice("kal", "flite", "kal16", (0.65, 0.75, 0.85)),
    Voice("slt", "flite", "slt", (0.65, 0.75, 0.85)),
    Voice("awb", "flite", "awb", (0.6, 0.7, 0.8)),
)

# One of each program. They speak test phrases only.
NEW_VOICES = (
    _espeak("midlands_m4", "en-gb-x-gbcwmd+m4", (40, 55)),
    Voice("rms", "flite", "rms", (0.6, 0.7, 0.8)),
)
