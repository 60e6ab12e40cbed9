"""The ways in which a page cannot be had.

    FetchError
    ├── Refused                an address, redirect or encoding that we do not follow
    │   ├── RobotsDisallow     the site's robots.txt asks us not to
    │   ├── WrongKind          a body that is no page and no feed, whatever its header says
    │   ├── Challenged         a page that asks whether we are human
    │   └── Resting            the site asked to be left alone, or failed too often
    ├── Unreachable            no answer: name, connection, TLS
    │   └── RobotsUnreachable  robots.txt cannot be had, so nothing is asked for
    ├── TooSlow                the whole fetch took longer than its deadline
    ├── TooLarge               more bytes than the cap, on the wire or unpacked
    ├── Damaged                an answer that is cut short or breaks the protocol
    └── BadStatus              an answer other than 200 or 304
        ├── Blocked            401, 403
        ├── Missing            404, 410: never read as "no listings"
        └── Busy               429

No message holds a query, a header or text of the answer: they may carry secrets.
"""

from __future__ import annotations


class FetchError(Exception):
    """A page could not be had. The message says where, what was read and what was expected."""


class Refused(FetchError):
    pass


class RobotsDisallow(Refused):
    pass


class WrongKind(Refused):
    pass


class Challenged(Refused):
    pass


class Resting(Refused):
    pass


class Unreachable(FetchError):
    pass


class RobotsUnreachable(Unreachable):
    pass


class TooSlow(FetchError):
    pass


class TooLarge(FetchError):
    pass


class Damaged(FetchError):
    pass


class BadStatus(FetchError):
    """`retry_after` is the header as it was sent."""

    def __init__(self, status: int, where: str, retry_after: str = "") -> None:
        super().__init__(f"{where} answered {status}, expected 200")
        self.status = status
        self.retry_after = retry_after


class Blocked(BadStatus):
    pass


class Missing(BadStatus):
    pass


class Busy(BadStatus):
    pass


NAMED_STATUS: dict[int, type[BadStatus]] = {
    401: Blocked,
    403: Blocked,
    404: Missing,
    410: Missing,
    429: Busy,
}
