"""Raw GPU names to gpu_id, with the reason.

A name is read by flows/gpu_spelling.py into a chip, its suffixes, bus, edition and memory; the cards that agree with
all of them are the candidates. The stated memory decides where the name does not. Where the candidates differ only in
bus, edition or memory, the smallest and slowest is taken and marked as assumed; of different chips, none is taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import polars as pl

from fitmart.estimator.frames import schema
from fitmart.flows.gpu_cards import Card, read_cards
from fitmart.flows.gpu_spelling import ALIAS_SCHEMA, Reading, Speller
from fitmart.warehouse.snapshot import SEEDS, read_seed, read_table

RESOLVED_SCHEMA = schema(
    raw_name=pl.String,
    memory_gb=pl.Float64,  # as given, of one GPU
    gpu_id=pl.String,  # null: no card of the catalog, or not certain which chip
    is_assumed=pl.Boolean,  # the chip is certain; form factor, edition or memory is not, and the lesser card is taken
    reason=pl.String,
    candidates=pl.String,  # gpu_ids that agree with what is known, joined by |
)

SAME_MEMORY = 0.08  # sources round, mix GB with GiB, and drivers hide up to 6 %
SHARE_BELOW = 0.6  # so little of a card's memory means a share of it
MODIFIED_ABOVE = 1.25  # so much more means other memory chips, or the total of several cards

# Superchips are sold as SXM; an NVL card is a PCIe card. A name may say either.
ALSO = {"nvl": {"pcie"}, "superchip": {"sxm"}}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a name means. `gpu_id` None: no card, and `reason` says why; `candidates` agree with what is known."""

    gpu_id: str | None
    is_assumed: bool
    reason: str
    candidates: tuple[str, ...] = ()
    memory_differs: bool = False  # the stated memory is not the card's, by more than SAME_MEMORY


def _none(reason: str, cards: Iterable[Card] = ()) -> Answer:
    return Answer(None, False, reason, tuple(c.gpu_id for c in cards if c.gpu_id))


class Resolver:
    """Resolves names against the cards of `gpus` (GPU_SCHEMA) and the rules of `aliases` (ALIAS_SCHEMA)."""

    def __init__(self, gpus: pl.DataFrame, aliases: pl.DataFrame) -> None:
        self.speller = Speller(aliases, gpus["name"].to_list())
        self.cards = read_cards(gpus, self.speller)
        self.ids = frozenset(gpus["gpu_id"])
        self.soft_of: dict[str, set[str]] = {}  # digits of a chip -> soft words of the cards named by digits alone
        for card in self.cards:
            for core in card.core:
                if core.isdigit():
                    self.soft_of.setdefault(core, set()).update(card.soft)

    def resolve(self, raw_name: str, memory_gb: float | None = None) -> Answer:
        """One name. Never raises: a name that says nothing resolves to none, with the reason."""
        text = " ".join((raw_name or "").lower().split())
        if not text:
            return _none("no name")
        if text in self.ids:
            return Answer(text, False, "gpu_id", (text,))
        if refusal := self.speller.refusal(text):
            return _none(refusal)
        machine = self.speller.machine(text)
        reading = self.speller.read(machine or text)
        cores = self._cores(reading)
        if not cores:
            return _none("no known GPU in the name")
        cards = [c for c in self.cards if c.core <= cores]
        if len({c.core for c in cards}) > 1:
            return _none("the name holds several GPUs", cards)
        cards = [c for c in cards if self._agrees(c, reading)]
        if not cards:
            return _none(f"no known card has this suffix: {raw_name}")
        return self._decide(cards, cores, reading, memory_gb, is_machine=bool(machine) or reading.names_a_machine)

    def resolve_offer(self, gpu_name: str, instance_type: str | None, memory_gb: float | None) -> tuple[Answer, bool]:
        """The GPU of an offer, from its name and its machine type, and whether the two contradict each other.

        A machine type often says what the name leaves out (p5.48xlarge is the SXM part), and may say that the GPU is a
        share. Two certain answers that differ leave the name's, assumed; a name whose memory is another's yields.
        """
        named = self.resolve(gpu_name, memory_gb)
        if not instance_type:
            return named, False
        text = " ".join(instance_type.lower().split())
        if refusal := self.speller.refusal(text):
            return _none(refusal), False
        of_machine = self.resolve(instance_type, memory_gb)
        if of_machine.gpu_id is None:
            return named, False
        if named.gpu_id is None:
            is_silent = not named.candidates and self.speller.refusal(gpu_name.lower()) is None
            is_hint = of_machine.gpu_id in named.candidates
            return (of_machine if is_hint or (is_silent and self.speller.machine(text)) else named), False
        if of_machine.gpu_id == named.gpu_id or (named.is_assumed and of_machine.gpu_id in named.candidates):
            better = named if of_machine.is_assumed else of_machine
            return better, False
        if of_machine.is_assumed and not named.memory_differs:
            return named, False
        chosen = of_machine if named.memory_differs and not of_machine.memory_differs else named
        reason = f"the name says {named.gpu_id}, the machine type {of_machine.gpu_id}"
        return Answer(chosen.gpu_id, True, reason, (named.gpu_id, of_machine.gpu_id), chosen.memory_differs), True

    def _cores(self, reading: Reading) -> frozenset[str]:
        """The words that name a chip. A short or bare-number one counts only where nothing else in the name is odd."""
        found = reading.texts("core")
        named = frozenset(c for c in found if not c.isdigit() and len(c) > 2)
        if named:
            return named
        is_branded = any(w.role in ("brand", "soft") for w in reading.words)
        is_plain = all(w.role != "unknown" for w in reading.words)
        if not (is_branded or is_plain):
            return frozenset()
        lettered = frozenset(c for c in found if not c.isdigit())
        bare = lettered or found
        if not lettered and self._has_odd_suffix(reading, bare):
            return frozenset()
        return bare

    @staticmethod
    def _has_odd_suffix(reading: Reading, cores: frozenset[str]) -> bool:
        """An unknown word of its own behind a consumer card's number, "RTX 4090 Foo", may make it another card."""
        pairs = zip(reading.words, reading.words[1:], strict=False)
        return any(
            a.text in cores and b.role == "unknown" and b.text.isalpha() and b.follows_space and not b.in_brackets
            for a, b in pairs
        )

    def _agrees(self, card: Card, reading: Reading) -> bool:
        """Suffixes are the same, generation words do not contradict, Max-Q and SFF only where the card says so."""
        hard, soft = reading.texts("hard"), reading.texts("soft")
        editions = reading.values("edition")
        is_number = all(c.isdigit() for c in card.core)
        if is_number:
            if reading.texts("short"):  # 4080S is Super, RTX PRO 6000 S is Server
                if card.edition == "server":
                    editions |= {"server"}
                else:
                    hard |= {"super"}
        else:
            hard -= {"d"}
        if hard != card.hard:
            return False
        rare = editions & {"maxq", "sff"}  # said beside "workstation" as well
        if rare and card.edition not in rare:
            return False
        if is_number:
            return soft <= card.soft
        digits = {c.lstrip("abcdefghijklmnopqrstuvwxyz") for c in card.core}
        return not any((soft - {"quadro"} - card.soft) & self.soft_of.get(d, set()) for d in digits)

    def _decide(
        self, cards: list[Card], cores: frozenset[str], reading: Reading, memory_gb: float | None, *, is_machine: bool
    ) -> Answer:
        """Bus and edition from the name, then the memory: of the source first, else the one written beside the chip."""
        notes = [self.speller.open_chips[c] for c in cores if c in self.speller.open_chips]
        cards, looser = self._by_bus(cards, reading, notes)
        cards = self._by_edition(cards, reading, notes)
        known = cards + looser
        given_gb, is_given_total = _per_gpu(memory_gb, known, reading.counts)
        named_gb, is_named_total = _per_gpu(reading.memory_beside(cores), known, reading.counts)
        stated_gb = given_gb or named_gb
        if stated_gb is None:
            return _choose(cards, notes)
        fitting = _of_memory(cards, given_gb) or _of_memory(looser, given_gb)
        is_given = bool(fitting)
        fitting = fitting or _of_memory(cards, named_gb) or _of_memory(looser, named_gb)
        if not fitting:
            refusal = _refuse_memory(cards, stated_gb)
            return _none(refusal, cards) if refusal else _choose(cards, notes, f"memory stated as {stated_gb:g} GB")
        if given_gb and named_gb and given_gb < SHARE_BELOW * named_gb:
            if not is_given:
                return _none(f"{given_gb:g} GB is a share of the {named_gb:g} GB card", cards)
            notes.append(f"the name says {named_gb:g} GB, the source {given_gb:g} GB")
        if is_given_total or (is_named_total and not is_given):
            notes.append("the memory is read as the total of the GPUs that the name counts")
        by_name = _of_memory(cards, named_gb) if named_gb else cards
        if given_gb and len(by_name) > len(fitting) and not is_machine:
            # A product name with the memory in a column beside: such columns hold totals and neighbours' figures too
            # often to call the card certain. Of a machine type, the memory is a fact of that machine.
            notes.append(f"the name leaves the memory open, the source says {given_gb:g} GB")
        return _choose(fitting, notes, by_memory=True)

    @staticmethod
    def _by_bus(cards: list[Card], reading: Reading, notes: list[str]) -> tuple[list[Card], list[Card]]:
        """Cards of the stated bus, and those that may also be called so. NVLink leaves a bridged pair open."""
        buses = reading.values("bus")
        has_nvlink = bool(reading.texts("nvlink"))
        if not buses:
            return cards, []
        exact = [c for c in cards if c.bus in buses or (has_nvlink and c.bus == "nvl")]
        if has_nvlink and len({c.bus for c in exact} & {"pcie", "nvl"}) > 1:
            notes.append("NVLink may mean a bridge between PCIe cards or the NVL card")
        also = [c for c in cards if ALSO.get(c.bus, set()) & buses]
        if exact or also:
            return exact or also, also
        if "nvl" in buses:
            notes.append("NVL may name a pair or a rack")
        elif not {c.bus for c in cards} & {"oam/pcie", "soc", "asic", "laptop"} and buses != {"pcie"}:
            notes.append(f"no such card with {'/'.join(sorted(buses))}")
        return cards, []

    @staticmethod
    def _by_edition(cards: list[Card], reading: Reading, notes: list[str]) -> list[Card]:
        editions = reading.values("edition")
        if reading.texts("short") and any(c.edition == "server" for c in cards):
            editions |= {"server"}
        if not editions:
            return cards
        exact = [c for c in cards if c.edition in editions]
        if not exact:
            notes.append(f"no such card in a {'/'.join(sorted(editions))} edition")
        return exact or cards


def _per_gpu(stated_gb: float | None, cards: list[Card], counts: frozenset[int]) -> tuple[float | None, bool]:
    """A stated memory as that of one GPU, and whether it had to be divided by a count in the name to be a card's."""
    if not stated_gb or stated_gb <= 0:
        return None, False
    if not _of_memory(cards, stated_gb):
        for count in sorted(counts):
            if _of_memory(cards, stated_gb / count):
                return stated_gb / count, True
    return stated_gb, False


def _of_memory(cards: list[Card], memory_gb: float | None) -> list[Card]:
    return [c for c in cards if memory_gb and c.distance(memory_gb) <= SAME_MEMORY]


def _refuse_memory(cards: list[Card], stated_gb: float) -> str | None:
    """Why a memory that no candidate has rules them all out; None where the source's figure may just be wrong."""
    sizes = sorted({c.memory_gb for c in cards})
    if stated_gb < SHARE_BELOW * sizes[0]:
        return f"{stated_gb:g} GB of {sizes[0]:g} GB: a share of a GPU"
    if stated_gb > MODIFIED_ABOVE * sizes[-1]:
        return f"{stated_gb:g} GB, the card has {sizes[-1]:g} GB: modified, or the total of several"
    if len(sizes) > 1:
        return f"no such card with {stated_gb:g} GB"
    return None


def _choose(cards: list[Card], notes: list[str], memory_note: str = "", *, by_memory: bool = False) -> Answer:
    """The one card, or the least of those that differ only in bus, edition or memory."""
    listed = sorted((c for c in cards if c.gpu_id), key=lambda c: c.rank)
    ids = tuple(str(c.gpu_id) for c in listed)
    if not listed:
        return _none(f"{cards[0].name} with {cards[0].memory_gb:g} GB is not in the catalog")
    if len({c.chip for c in cards}) > 1:
        return Answer(None, False, f"one name for {', '.join(c.name for c in cards)}", ids)
    if len(cards) == 1 and not notes:
        decided = "name and memory" if by_memory else "name"
        return Answer(ids[0], False, "; ".join(filter(None, [decided, memory_note])), ids, bool(memory_note))
    if len(cards) > 1:
        open_axes = [
            axis
            for axis, values in (
                ("form factor", {c.bus for c in cards}),
                ("edition", {c.edition for c in cards}),
                ("memory", {c.memory_gb for c in cards}),
            )
            if len(values) > 1
        ]
        notes = [f"{' and '.join(open_axes)} not stated: the lesser card is taken", *notes]
    return Answer(ids[0], True, "; ".join(filter(None, [*notes, memory_note])), ids, bool(memory_note))


@cache
def bundled_resolver() -> Resolver:
    """A resolver of the bundled tables."""
    return Resolver(read_seed("gpu"), read_table(SEEDS / "gpu_alias.csv", ALIAS_SCHEMA))


def resolve(names: Sequence[tuple[str, float | None]], *, resolver: Resolver | None = None) -> pl.DataFrame:
    """(raw name, memory of one GPU in GB or None) → RESOLVED_SCHEMA, one row each, in order; no name is an error."""
    resolver = resolver or bundled_resolver()
    known: dict[tuple[str, float | None], Answer] = {}
    for key in names:
        if key not in known:
            known[key] = resolver.resolve(*key)
    answers = [known[key] for key in names]
    return pl.DataFrame(
        {
            "raw_name": [name for name, _ in names],
            "memory_gb": [memory for _, memory in names],
            "gpu_id": [a.gpu_id for a in answers],
            "is_assumed": [a.is_assumed for a in answers],
            "reason": [a.reason for a in answers],
            "candidates": ["|".join(a.candidates) for a in answers],
        },
        schema=RESOLVED_SCHEMA,
    )
