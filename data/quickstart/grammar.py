"""The bilingual phrase grammar of the quickstart corpus.

Every phrase is drawn together with its translation, slot by slot, so that gender, case, plural and word order are right
by construction. What makes it a translation task and not a word-by-word relabelling:

* units come before tens ("twenty five" -> "fünfundzwanzig"), in ordinals too;
* half hours count towards the next hour ("half past nine" -> "halb zehn");
* separable prefixes, infinitives and participles end the clause ("leaves at nine" -> "fährt um neun Uhr ab");
* German puts the time before the object ("bought a lamp on monday" -> "hat am Montag eine Lampe gekauft").

`HELD_OUT` lists the pairs of pieces that must not meet in a training phrase; see `HeldOut`.
"""

import random
import re
from dataclasses import dataclass

# ---------------------------------------------------------------------------------------------------------------------
# Vocabulary
# ---------------------------------------------------------------------------------------------------------------------

UNITS_EN = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
UNITS_DE = ["", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
TENS_EN = {20: "twenty", 30: "thirty", 40: "forty", 50: "fifty"}
TENS_DE = {20: "zwanzig", 30: "dreißig", 40: "vierzig", 50: "fünfzig"}

COUNTS = list(range(2, 13))
ROUND_AMOUNTS = COUNTS + list(TENS_EN)
COMPOUND_AMOUNTS = [ten + unit for ten in TENS_EN for unit in range(1, 10)]
HOURS = list(range(1, 13))

ORDINALS_EN = ["", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
               "eleventh", "twelfth"]
ORDINAL_STEMS_DE = ["", "erst", "zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht", "neunt", "zehnt", "elft",
                    "zwölft"]
TENTHS_EN = {20: "twentieth", 30: "thirtieth"}
DAYS_OF_MONTH = list(range(1, 13)) + list(range(20, 26)) + [30]

MONTHS = [("january", "Januar"), ("february", "Februar"), ("march", "März"), ("april", "April"), ("may", "Mai"),
          ("june", "Juni"), ("july", "Juli"), ("august", "August"), ("september", "September"), ("october", "Oktober"),
          ("november", "November"), ("december", "Dezember")]
WEEKDAYS = [("monday", "Montag"), ("tuesday", "Dienstag"), ("wednesday", "Mittwoch"), ("thursday", "Donnerstag"),
            ("friday", "Freitag"), ("saturday", "Samstag"), ("sunday", "Sonntag")]


@dataclass(frozen=True)
class Noun:
    """A thing that can be ordered or priced. `adjectives` names the ones that fit it."""

    en: str
    en_plural: str
    gender: str  # m, f, n
    de: str
    de_plural: str
    adjectives: tuple = ()


SIZE = ("big", "small")
ANY = ("big", "small", "new", "red", "green")
NOUNS = [
    Noun("coffee", "coffees", "m", "Kaffee", "Kaffee"),
    Noun("tea", "teas", "m", "Tee", "Tee"),
    Noun("beer", "beers", "n", "Bier", "Bier"),
    Noun("apple", "apples", "m", "Apfel", "Äpfel", SIZE),
    Noun("pear", "pears", "f", "Birne", "Birnen", SIZE),
    Noun("egg", "eggs", "n", "Ei", "Eier", SIZE),
    Noun("cake", "cakes", "m", "Kuchen", "Kuchen", SIZE),
    Noun("banana", "bananas", "f", "Banane", "Bananen", SIZE),
    Noun("book", "books", "n", "Buch", "Bücher", ANY),
    Noun("lamp", "lamps", "f", "Lampe", "Lampen", ANY),
    Noun("chair", "chairs", "m", "Stuhl", "Stühle", ANY),
    Noun("table", "tables", "m", "Tisch", "Tische", ANY),
    Noun("bottle", "bottles", "f", "Flasche", "Flaschen", ANY),
    Noun("picture", "pictures", "n", "Bild", "Bilder", ANY),
]
GOODS = [noun for noun in NOUNS if noun.adjectives == ANY]
ADJECTIVES_DE = {"big": "groß", "small": "klein", "new": "neu", "red": "rot", "green": "grün"}

EIN_ACCUSATIVE = {"m": "einen", "f": "eine", "n": "ein"}
DER_NOMINATIVE = {"m": "der", "f": "die", "n": "das"}
DER_ACCUSATIVE = {"m": "den", "f": "die", "n": "das"}
EIN_ENDING_ACCUSATIVE = {"m": "en", "f": "e", "n": "es"}  # einen roten, eine rote, ein rotes
DER_ENDING_ACCUSATIVE = {"m": "en", "f": "e", "n": "e"}  # den roten, die rote, das rote


@dataclass(frozen=True)
class Person:
    """A subject; `form` indexes the German verb forms: 0 = ich, 1 = wir, 2 = third person singular."""

    en: str
    de: str
    form: int


PERSONS = [Person("i", "ich", 0), Person("we", "wir", 1), Person("he", "er", 2), Person("she", "sie", 2),
           Person("my brother", "mein Bruder", 2), Person("my sister", "meine Schwester", 2),
           Person("my father", "mein Vater", 2), Person("my mother", "meine Mutter", 2),
           Person("the man", "der Mann", 2), Person("the woman", "die Frau", 2)]

# English infinitive and past; German infinitive and participle.
ACTIONS = [("buy", "bought", "kaufen", "gekauft"), ("order", "ordered", "bestellen", "bestellt"),
           ("sell", "sold", "verkaufen", "verkauft"), ("bring", "brought", "bringen", "gebracht")]
# English for i/we and for the third person; German for ich, wir, er.
MODALS = [("want to", "wants to", ("will", "wollen", "will")), ("have to", "has to", ("muss", "müssen", "muss")),
          ("can", "can", ("kann", "können", "kann"))]
HABEN = ("habe", "haben", "hat")
MOECHTE = ("möchte", "möchten", "möchte")

# English third person; German third person and the separable prefix that ends the clause.
TRAVEL = [("leaves", "fährt", "ab"), ("arrives", "kommt", "an")]
TRAVEL_PERSONS = [("leave", "leaves", ("fahre", "fahren", "fährt"), "ab"),
                  ("arrive", "arrives", ("komme", "kommen", "kommt"), "an")]
DOORS = [("opens", "macht", "auf"), ("closes", "macht", "zu")]
SHOWS = [("begins", "fängt", "an"), ("ends", "hört", "auf")]
EVENTS = [("train", "der Zug", TRAVEL), ("bus", "der Bus", TRAVEL), ("ship", "das Schiff", TRAVEL),
          ("shop", "der Laden", DOORS), ("bank", "die Bank", DOORS), ("museum", "das Museum", DOORS),
          ("film", "der Film", SHOWS), ("concert", "das Konzert", SHOWS), ("course", "der Kurs", SHOWS)]


# ---------------------------------------------------------------------------------------------------------------------
# Spelling of numbers
# ---------------------------------------------------------------------------------------------------------------------


def cardinal(n):
    """English and German words of 2..12 and 20..59."""
    if n <= 12:
        return UNITS_EN[n], UNITS_DE[n]
    ten, unit = n - n % 10, n % 10
    if unit == 0:
        return TENS_EN[ten], TENS_DE[ten]
    unit_de = "ein" if unit == 1 else UNITS_DE[unit]
    return f"{TENS_EN[ten]} {UNITS_EN[unit]}", f"{unit_de}und{TENS_DE[ten]}"


def ordinal(n):
    """English word and German stem (without the ending -e or -en) of DAYS_OF_MONTH."""
    if n <= 12:
        return ORDINALS_EN[n], ORDINAL_STEMS_DE[n]
    ten, unit = n - n % 10, n % 10
    english = f"{TENS_EN[ten]} {ORDINALS_EN[unit]}" if unit else TENTHS_EN[ten]
    return english, cardinal(n)[1] + "st"


# ---------------------------------------------------------------------------------------------------------------------
# Held-out pairs
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOut:
    """Two pieces, each common in training, that meet in test phrases marked "compositional" only.

    `pattern` finds the pair in an English text, so that the corpus can be checked without trusting its subset column.
    """

    kind: str
    left: str
    right: str
    pattern: re.Pattern


def _held_out_pairs():
    """Two counts for each noun, two days for each month, two hours for each verb, one ten for each article."""
    pairs = []
    n_days = len(DAYS_OF_MONTH)
    for i, noun in enumerate(NOUNS):
        for count in (COUNTS[3 * i % len(COUNTS)], COUNTS[(3 * i + 5) % len(COUNTS)]):
            number = UNITS_EN[count]
            pattern = rf"\b{number} (?:(?:{'|'.join(ANY)}) )?{noun.en_plural}\b"
            pairs.append(HeldOut("count + noun", number, noun.en_plural, re.compile(pattern)))
    for i, (month, _) in enumerate(MONTHS):
        for day in (DAYS_OF_MONTH[5 * i % n_days], DAYS_OF_MONTH[(5 * i + 9) % n_days]):
            word = ordinal(day)[0]
            pairs.append(HeldOut("day + month", word, month, re.compile(rf"\bthe {word} of {month}\b")))
    verbs = ["leaves?", "arrives?", "opens", "closes", "begins", "ends"]
    for i, verb in enumerate(verbs):
        for hour in (HOURS[2 * i], HOURS[(2 * i + 7) % 12]):
            word = UNITS_EN[hour]
            pattern = rf"\b{verb}\b.* at (?:.* )?{word}(?: o'clock)?$"
            pairs.append(HeldOut("verb + hour", verb.replace("?", ""), word, re.compile(pattern)))
    for i, noun in enumerate(GOODS):
        tens = TENS_EN[20 + 10 * (i % 4)]
        pattern = rf"^(?=.*\b{noun.en}s?\b)(?=.*\b{tens}(?: \w+)? euros\b)"
        pairs.append(HeldOut("article + price", noun.en, tens, re.compile(pattern)))
    return tuple(pairs)


HELD_OUT = _held_out_pairs()


def held_out_in(english):
    """The held-out pairs that occur in an English text."""
    return [pair for pair in HELD_OUT if pair.pattern.search(english)]


# ---------------------------------------------------------------------------------------------------------------------
# Drawing phrases
# ---------------------------------------------------------------------------------------------------------------------


class Grammar:
    """Draws (English, German) phrases; the sequence is a function of the seed alone.

    Slots are dealt from shuffled decks and not drawn independently, so that every word comes up almost equally often in
    a corpus this small.
    """

    FAMILIES = ("clock", "event_time", "event_date", "date_is", "price", "paid", "order", "action")
    WEIGHTS = (4, 17, 9, 10, 15, 7, 12, 26)

    def __init__(self, seed):
        self._rng = random.Random(seed)
        self._decks = {}

    def draw(self):
        family = self._rng.choices(self.FAMILIES, self.WEIGHTS)[0]
        return getattr(self, "_" + family)()

    def _deal(self, name, items):
        deck = self._decks.setdefault(name, [])
        if not deck:
            deck.extend(items)
            self._rng.shuffle(deck)
        return deck.pop()

    def _chance(self, probability):
        return self._rng.random() < probability

    # Slots ------------------------------------------------------------------------------------------------------------

    def _time(self):
        """A time of day as it stands after "it is" / "es ist"."""
        kind = self._deal("time", ["full"] + ["half"] * 3 + ["quarter"] * 2 + ["minutes"] * 3)
        hour = self._deal("hour " + kind, HOURS)
        english, german = UNITS_EN[hour], UNITS_DE[hour]
        if kind == "full":
            return f"{english} o'clock", f"{'ein' if hour == 1 else german} Uhr"
        if kind == "half":
            return f"half past {english}", f"halb {UNITS_DE[hour % 12 + 1]}"
        side_en, side_de = self._deal("side " + kind, [("past", "nach"), ("to", "vor")])
        if kind == "quarter":
            return f"quarter {side_en} {english}", f"Viertel {side_de} {german}"
        minutes_en, minutes_de = self._deal("minutes", [("five", "fünf"), ("ten", "zehn"), ("twenty", "zwanzig")])
        return f"{minutes_en} {side_en} {english}", f"{minutes_de} {side_de} {german}"

    def _day(self, relative):
        """An adverb of day; `relative` lists the words allowed beside the days of the week."""
        weekdays = [("on " + en, "am " + de) for en, de in WEEKDAYS]
        return self._deal("day " + "".join(en for en, _ in relative), weekdays + relative)

    def _date(self, ending):
        """An ordinal with its month, as after "the" / "der" (ending "e") or "dem" (ending "en")."""
        day = self._deal("day of month " + ending, DAYS_OF_MONTH)
        english, stem = ordinal(day)
        month_en, month_de = self._deal("month " + ending, MONTHS)
        while day == 30 and month_en == "february":
            month_en, month_de = self._deal("month " + ending, MONTHS)
        return f"{english} of {month_en}", f"{stem}{ending} {month_de}"

    def _amount(self):
        """A sum of money; whole euros or euros and cents."""
        compound = self._chance(0.7)
        euros = self._deal("compound", COMPOUND_AMOUNTS) if compound else self._deal("round", ROUND_AMOUNTS)
        english, german = cardinal(euros)
        if self._chance(0.75):
            return f"{english} euros", f"{german} Euro"
        cents_en, cents_de = cardinal(self._deal("cents", list(TENS_EN)))
        return f"{english} euros {cents_en}", f"{german} Euro {cents_de}"

    def _event(self):
        """English subject, English verb, German subject, German verb and the prefix that ends the German clause."""
        if self._chance(0.3):
            person = self._deal("traveller", PERSONS)
            en, en_third, forms, prefix = self._deal("travel", TRAVEL_PERSONS)
            return person.en, en_third if person.form == 2 else en, person.de, forms[person.form], prefix
        subject_en, subject_de, verbs = self._deal("event", EVENTS)
        verb_en, verb_de, prefix = self._deal("verb " + subject_en, verbs)
        return "the " + subject_en, verb_en, subject_de, verb_de, prefix

    def _counted(self, nouns):
        """A counted plural, the same in nominative and accusative, sometimes with an adjective."""
        noun = self._deal("counted", nouns)
        number_en, number_de = cardinal(self._deal("count", COUNTS))
        adjective_en, stem = self._adjective(noun)
        adjective_de = f"{stem}e " if stem else ""
        return f"{number_en} {adjective_en}{noun.en_plural}", f"{number_de} {adjective_de}{noun.de_plural}"

    def _adjective(self, noun):
        """English adjective with a space behind it and German stem; both empty half of the time or if none fits."""
        if not noun.adjectives or self._chance(0.5):
            return "", ""
        adjective = self._deal("adjective " + " ".join(noun.adjectives), noun.adjectives)
        return adjective + " ", ADJECTIVES_DE[adjective]

    def _some(self):
        """An indefinite object in the accusative: one article or a counted plural, sometimes with an adjective."""
        if self._chance(0.6):
            return self._counted(NOUNS)
        noun = self._deal("single", NOUNS)
        adjective_en, stem = self._adjective(noun)
        adjective_de = f"{stem}{EIN_ENDING_ACCUSATIVE[noun.gender]} " if stem else ""
        article = "an" if (adjective_en or noun.en)[0] in "ae" else "a"
        return f"{article} {adjective_en}{noun.en}", f"{EIN_ACCUSATIVE[noun.gender]} {adjective_de}{noun.de}"

    def _the(self, articles, endings):
        """A definite noun phrase, with an adjective more often than not."""
        noun = self._deal("priced", GOODS)
        article = articles[noun.gender]
        if self._chance(0.3):
            return f"the {noun.en}", f"{article} {noun.de}"
        adjective = self._deal("priced adjective", ANY)
        ending = endings[noun.gender] if endings else "e"
        return f"the {adjective} {noun.en}", f"{article} {ADJECTIVES_DE[adjective]}{ending} {noun.de}"

    # Phrase families --------------------------------------------------------------------------------------------------

    def _clock(self):
        time_en, time_de = self._time()
        if self._chance(0.4):
            return f"it is {time_en}", f"es ist {time_de}"
        day_en, day_de = self._day([("today", "heute"), ("tomorrow", "morgen")])
        return f"{day_en} at {time_en}", f"{day_de} um {time_de}"

    def _event_time(self):
        subject_en, verb_en, subject_de, verb_de, prefix = self._event()
        time_en, time_de = self._time()
        time_en, time_de = f"at {time_en}", f"um {time_de}"
        if self._chance(0.4):
            return f"{subject_en} {verb_en} {time_en}", f"{subject_de} {verb_de} {time_de} {prefix}"
        day_en, day_de = self._day([("today", "heute"), ("tomorrow", "morgen")])
        if self._chance(0.5):
            return (f"{day_en} {subject_en} {verb_en} {time_en}",
                    f"{day_de} {verb_de} {subject_de} {time_de} {prefix}")
        return f"{subject_en} {verb_en} {day_en} {time_en}", f"{subject_de} {verb_de} {day_de} {time_de} {prefix}"

    def _event_date(self):
        subject_en, verb_en, subject_de, verb_de, prefix = self._event()
        date_en, date_de = self._date("en")
        if self._chance(0.5):
            return (f"on the {date_en} {subject_en} {verb_en}",
                    f"am {date_de} {verb_de} {subject_de} {prefix}")
        return f"{subject_en} {verb_en} on the {date_en}", f"{subject_de} {verb_de} am {date_de} {prefix}"

    def _date_is(self):
        day_en, day_de = self._deal("named day", [("today", "heute"), ("tomorrow", "morgen")])
        date_en, date_de = self._date("e")
        if self._chance(0.5):
            return f"{day_en} is the {date_en}", f"{day_de} ist der {date_de}"
        weekday_en, weekday_de = self._deal("weekday", WEEKDAYS)
        return f"{day_en} is {weekday_en} the {date_en}", f"{day_de} ist {weekday_de}, der {date_de}"

    def _price(self):
        amount_en, amount_de = self._amount()
        kind = self._deal("price", ["that"] + ["the"] * 4 + ["count"] * 4)
        if kind == "that":
            return f"that is {amount_en}", f"das macht {amount_de}"
        if kind == "count":
            things_en, things_de = self._counted(GOODS)
            return f"{things_en} cost {amount_en}", f"{things_de} kosten {amount_de}"
        thing_en, thing_de = self._the(DER_NOMINATIVE, None)
        return f"{thing_en} costs {amount_en}", f"{thing_de} kostet {amount_de}"

    def _paid(self):
        person = self._deal("buyer", PERSONS)
        amount_en, amount_de = self._amount()
        thing_en, thing_de = self._the(DER_ACCUSATIVE, DER_ENDING_ACCUSATIVE) if self._chance(0.4) else self._some()
        return (f"{person.en} paid {amount_en} for {thing_en}",
                f"{person.de} {HABEN[person.form]} {amount_de} für {thing_de} bezahlt")

    def _order(self):
        person = self._deal("guest", PERSONS)
        object_en, object_de = self._some()
        if self._chance(0.4):
            more_en, more_de = self._some()
            while more_en.split()[-1].rstrip("s") == object_en.split()[-1].rstrip("s"):
                more_en, more_de = self._some()
            object_en, object_de = f"{object_en} and {more_en}", f"{object_de} und {more_de}"
        return f"{person.en} would like {object_en}", f"{person.de} {MOECHTE[person.form]} {object_de}"

    def _action(self):
        person = self._deal("actor", PERSONS)
        infinitive_en, past_en, infinitive_de, participle_de = self._deal("action", ACTIONS)
        object_en, object_de = self._some()
        past = self._chance(0.5)
        if past:
            verb_en, finite_de, final_de = past_en, HABEN[person.form], participle_de
        else:
            modal_en, modal_third_en, forms = self._deal("modal", MODALS)
            verb_en = f"{modal_third_en if person.form == 2 else modal_en} {infinitive_en}"
            finite_de, final_de = forms[person.form], infinitive_de
        if self._chance(0.5):
            return f"{person.en} {verb_en} {object_en}", f"{person.de} {finite_de} {object_de} {final_de}"
        day_en, day_de = self._day([("today", "heute")] if past else [("today", "heute"), ("tomorrow", "morgen")])
        if self._chance(0.5):
            return (f"{day_en} {person.en} {verb_en} {object_en}",
                    f"{day_de} {finite_de} {person.de} {object_de} {final_de}")
        return (f"{person.en} {verb_en} {object_en} {day_en}",
                f"{person.de} {finite_de} {day_de} {object_de} {final_de}")
