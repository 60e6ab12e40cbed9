"""Every fault by number, with its promise. Numbers and grading follow reference/faults.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Harm(StrEnum):
    """What it means when a fault is not survived: the promise that its trials hold us to."""

    WRONG_STATE = "wrong state"
    LOST = "lost"
    LET_IN = "let in"


_LOSES = re.compile(r"F0[126]|F2[018]|F3[5-9]|F4[01349]|F5[0-58]")
"""Listings that vanish, and work that is due and never done."""

_LETS_IN = re.compile(r"F1[5-7]|F8[0-5]")
"""An address, a header or a page that nobody had a right to."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`first` ones must all be survived before a release."""

    number: str
    name: str
    first: bool = False

    @property
    def harm(self) -> Harm:
        if _LETS_IN.fullmatch(self.number):
            return Harm.LET_IN
        return Harm.LOST if _LOSES.fullmatch(self.number) else Harm.WRONG_STATE


_LINES = """
F01  nothing changed (304)
F02  304 without a stored body
F03* busy, with any Retry-After
F04* 500, 502, 503, 504
F05  401, 403, challenge page
F06* 404, 410
F07* a byte a second
F08* a header line a second, or five megabytes of headers
F09  connection swallowed, or accepted in silence
F10  name not found, or found too slowly
F11* body shorter than its length
F12* body cut without a length, gzip cut
F13  wrong, unknown or contradicting encoding
F14  redirects without end
F15* redirect to another host, or from https to http
F16* certificate expired, of another name, or vouched for by nobody
F17* robots.txt disallows
F18  robots.txt cannot be had
F19  a PDF, a picture or JSON called HTML
F20* an empty page
F21* nine in ten listings gone
F22* columns renamed, swapped, moved
F23* prices a hundredfold, or a thousandth
F24* another basis, unit or currency
F25  one id with two contents
F26* an id given to other hardware
F27  a new id for the same machine
F28* pages without end, or one missing
F29  catalog changes between its pages
F30* numbers that cannot be
F31  a date from the future, a page from an old cache
F32  unknown GPU, new field, null anywhere
F33  far too much
F34  two layouts that take turns
F35* one source of twenty fails every way
F36* worker killed before the fetch
F37* worker killed between fetch and commit
F38* worker killed inside the commit
F39* worker killed after the commit
F40* child killed as if out of memory
F41  worker asked to stop
F42* reader spins
F43  memory leaks
F44  disk full
F45  clock jumps
F46* two workers, one slot
F47* a page that kills its worker
F48  unknown message
F49* worker frozen, then resumed
F50* broker down when work is left
F51* broker frozen
F52* broker restarted empty
F53  connection to the broker reset
F54  broker out of memory
F55* task outlives its visibility
F56* two schedulers
F57  scheduler dead for three intervals
F58  schedule edited while due
F80* addresses that are not public
F81* addresses in odd spellings
F82* redirect inside
F83* name that changes its address
F84  addresses that two parsers read differently
F85* schemes and ports that are not the web's
F86* bombs of gzip
F89* twenty thousand open tags
"""


def _fault(line: str) -> Fault:
    number, _, name = line.partition(" ")
    return Fault(number.rstrip("*"), name.strip(), number.endswith("*"))


FAULTS = tuple(map(_fault, _LINES.strip().splitlines()))
