"""How providers spell GPUs: a raw name becomes words with roles. The spellings are data, warehouse/seeds/gpu_alias.csv.

Kinds of rows there (patterns are regular expressions on the lower-case name):
- none: a name that must not resolve (a share, a modified card, a secret); `value` says why
- instance: a machine type of a provider; `value` is the GPU that its documentation names, read in its place
- spelling: one writing of a word for another; applied to the catalog's own names as well, in the order of the file
- word: a word and its role: brand, neutral, hard (ti, super: another product), soft (ada, pro: may be left out),
  bus:…, edition:…, nvlink, short (one letter with several meanings)
- card: a real card that the catalog does not hold; it competes, and a name that means it resolves to none
- count: a machine type whose number of GPUs sources get wrong; `value` is the number
- open: a chip whose name alone leaves something open; `note` says what
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

ALIAS_SCHEMA = pl.Schema(
    {
        "kind": pl.String,
        "pattern": pl.String,
        "value": pl.String,
        "note": pl.String,
        "source_id": pl.String,
        "observed_on": pl.Date,
    }
)

MEMORY = re.compile(r"(\d+(?:\.\d+)?)(?:gib|gb|gi|g)")
MEMORY_MIB = re.compile(r"(\d{4,})mib")
COUNT = re.compile(r"\d{1,3}x|x\d{1,3}|\d+")
# What machine types say about the host: 28v, 16vcpu, 8gpu, 1x30v115g, 65536mb, v5, 80vram, 1t.
HOST = re.compile(r"\d+(?:v|c|cpus?|vcpus?|vram|gpus?|mb|tb|t|w)|\d+x\d+v\d+gb?|v\d")
MIB_PER_GIB = 1024
PARTS = re.compile(r"[a-z0-9]+|[()]|[^a-z0-9()]+")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a name: its role and where it stands. `core` names the chip; `unknown` is noise."""

    role: str
    text: str
    follows_space: bool = False
    in_brackets: bool = False


@dataclass(slots=True)
class Reading:
    """The words of one name, by role."""

    words: list[Word] = field(default_factory=list)

    def texts(self, role: str) -> frozenset[str]:
        return frozenset(w.text for w in self.words if w.role == role)

    def values(self, role: str) -> frozenset[str]:
        """What follows the colon: `bus` of bus:sxm and bus:pcie is {sxm, pcie}."""
        return frozenset(w.role.partition(":")[2] for w in self.words if w.role.startswith(f"{role}:"))

    @property
    def names_a_machine(self) -> bool:
        """It counts GPUs or describes a host: "8x-…", "A40x4", "…_1x4v8gb"."""
        return any(w.role == "host" or (w.role == "count" and "x" in w.text) for w in self.words)

    @property
    def counts(self) -> frozenset[int]:
        """How many GPUs the name counts: 8 of "8x-…" or "A40x8"."""
        digits = (w.text.strip("x") for w in self.words if w.role == "count" and "x" in w.text)
        return frozenset(int(d) for d in digits if d.isdigit() and int(d) > 1)

    def memory_beside(self, cores: frozenset[str]) -> float | None:
        """The memory written beside the chip: "A100 80GB", not the "300G" of "1x_H200_28V_300G"."""
        near = ("core", "hard", "soft", "bus", "edition", "nvlink", "brand", "neutral")
        for i, word in enumerate(self.words):
            if word.role != "memory":
                continue
            before = next((w for w in reversed(self.words[:i]) if w.role != "count"), None)
            after = self.words[i + 1] if i + 1 < len(self.words) else None
            is_beside = (before is not None and before.role.partition(":")[0] in near) or (
                before is None and after is not None and after.text in cores
            )
            if is_beside:
                return float(word.text)
        return None


class Speller:
    """Reads names by the rules of gpu_alias.csv and the chips of the cards in `card_names`."""

    def __init__(self, rules: pl.DataFrame, card_names: list[str]) -> None:
        rows = [(r["kind"], r["pattern"], r["value"] or "", r["note"] or "") for r in rules.iter_rows(named=True)]

        def compiled(wanted: str) -> list[tuple[re.Pattern[str], str]]:
            return [(re.compile(pattern), value) for kind, pattern, value, _ in rows if kind == wanted]

        self.none_rules, self.instances, self.spellings = compiled("none"), compiled("instance"), compiled("spelling")
        self.counts = [(pattern, int(value)) for pattern, value in compiled("count")]
        self.roles = {pattern: value for kind, pattern, value, _ in rows if kind == "word"}
        self.open_chips = {pattern: note for kind, pattern, _, note in rows if kind == "open"}
        self.unlisted = [(pattern, float(value)) for kind, pattern, value, _ in rows if kind == "card"]
        self.cores: frozenset[str] = frozenset()
        names = [*card_names, *(name for name, _ in self.unlisted)]
        self.cores = frozenset(w.text for name in names for w in self.read_card(name).words if w.role == "unknown")
        self._cut = lru_cache(maxsize=None)(self._cut_uncached)

    def refusal(self, text: str) -> str | None:
        """Why this name must not resolve, if a rule says so."""
        spaced = text.replace("_", " ")  # an underscore is no end of a word to a regular expression
        return next((why for pattern, why in self.none_rules if pattern.search(text) or pattern.search(spaced)), None)

    def machine(self, text: str) -> str | None:
        """The GPU of a machine type that a rule knows."""
        for pattern, gpu in self.instances:
            if found := pattern.search(text):
                return found.expand(gpu).lower()
        return None

    def gpu_count(self, text: str) -> int | None:
        """GPUs of a machine type, where sources are known to get it wrong."""
        return next((count for pattern, count in self.counts if pattern.search(text)), None)

    def respell(self, text: str) -> str:
        text = text.replace("_", " ")
        for pattern, instead in self.spellings:
            text = pattern.sub(instead, text)
        return text

    def read_card(self, name: str) -> Reading:
        """A card's own name: what has no role is its chip; remarks in brackets are for people."""
        text = re.sub(r"\([^)]*\)", " ", self.respell(name.lower()))
        text = re.sub(r"(\d) ?gb\b", r"\1gb", text)
        return Reading([Word(self._role(w) or "unknown", w) for w in re.findall(r"[a-z0-9]+", text)])

    def read(self, text: str) -> Reading:
        """A raw name, lower-case; glued words are cut ("rtxpro6000s", "8b200", "a40x4")."""
        text = re.sub(r"(\d) (gi?b?|mib)\b", r"\1\2", self.respell(text))
        reading, depth, is_spaced = Reading(), 0, True
        for part in PARTS.findall(text):
            if part in "()":
                depth, is_spaced = max(0, depth + (1 if part == "(" else -1)), True
            elif not part[0].isalnum():
                is_spaced = part.isspace()
            else:
                for i, piece in enumerate(self._pieces(part)):
                    role, word = piece
                    reading.words.append(Word(role, word, is_spaced and i == 0, depth > 0))
                is_spaced = False
        return reading

    def _pieces(self, word: str) -> list[tuple[str, str]]:
        if role := self._known(word):
            return [role]
        cut = self._cut(word)
        return [self._known(w) or ("unknown", w) for w in cut] if cut else [("unknown", word)]

    def _known(self, word: str) -> tuple[str, str] | None:
        if word in self.cores:
            return "core", word
        if found := MEMORY.fullmatch(word):
            return "memory", found[1]
        if found := MEMORY_MIB.fullmatch(word):
            return "memory", str(float(found[1]) / MIB_PER_GIB)
        if COUNT.fullmatch(word):
            return "count", word
        if HOST.fullmatch(word):
            return "host", word
        role = self._role(word)
        return (role, word) if role else None

    def _role(self, word: str) -> str | None:
        if MEMORY.fullmatch(word):
            return "memory"
        return self.roles.get(word)

    def _cut_uncached(self, word: str) -> tuple[str, ...] | None:
        """`word` as known words without a gap, the longest first; a count may lead or end it."""
        counted = re.fullmatch(r"(\d{1,2}x?)?([a-z].*?|\d{4}[a-z].*?)(x\d{1,2})?", word)
        if counted is None:
            return None
        middle = self._atoms(counted[2])
        if middle is None or not (self.cores.intersection(middle) or all(len(w) > 2 for w in middle)):
            return None
        return tuple(w for w in (counted[1], *middle, counted[3]) if w)

    def _atoms(self, text: str) -> tuple[str, ...] | None:
        if not text:
            return ()
        for end in range(len(text), 0, -1):
            head = text[:end]
            if not (head in self.cores or head in self.roles or MEMORY.fullmatch(head)):
                continue
            rest = self._atoms(text[end:])
            if rest is not None:
                return (head, *rest)
        return None
