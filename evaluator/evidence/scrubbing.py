"""Takes out what names a person, a host or a device before a paste is kept.

Hosts keep a number each, since how many machines speak in a log is a fact that readers need. All
patterns are bounded, so that the time grows with the length of the text only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from evaluator.evidence.json_parts import without_parts
from evaluator.evidence.lines import ESCAPES, INVISIBLE
from evaluator.evidence.readings import Scrubbed

NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}"
PLACEHOLDER = re.compile(r"host-\d{1,6}")
TELLING = re.compile(r"(?=.{4})(?=.{0,120}[0-9.-])[A-Za-z].{0,120}")
"""A host name that is also looked for in running text: `node` alone would be a word."""

NOT_HOSTS = re.compile(
    r"(?i)(?:gpu|nic|mlx|rank|channel|device|link)[\d_-]{0,8}|localhost|hostname"
)
NOT_NAMED = re.compile(r"(?:GPU|NIC)\d{0,4}|(?i:rank|channel|device|link|localhost|hostname)")
"""Words where a host name is expected; `gpu77` is a usual name for a host there."""
WORD = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z0-9][A-Za-z0-9_.-]{3,120}")

HOSTS = (
    re.compile(
        rf"(?m)(?P<before>^|[\s\]|])(?P<host>{NAME})"
        rf"(?P<after>:\d{{1,9}}:\d{{1,9}}(?=\s{{1,4}}\[))"
    ),
    re.compile(rf"(?P<before>\bon\s{{1,20}})(?P<host>{NAME})(?P<after>\s{{1,20}}device\b)"),
    re.compile(rf"(?P<before>\bLinux\s)(?P<host>{NAME})(?P<after>\s\d{{1,2}}\.\d{{1,3}}\.)"),
    re.compile(
        rf"(?im)(?P<before>^[\s#]{{0,20}}(?:host ?name|node ?name|node|host)"
        rf"\s{{0,40}}[:=]\s{{0,8}})"
        rf"(?P<host>{NAME})(?P<after>\s{{0,8}}$)"
    ),
    re.compile(
        rf'(?i)(?P<before>"(?:hostname|host|node|nodename)"\s{{0,8}}:\s{{0,8}}")'
        rf'(?P<host>{NAME})(?P<after>")'
    ),
    re.compile(rf'(?i)(?P<before>"HostName" value=")(?P<host>{NAME})(?P<after>")'),
    re.compile(rf"(?m)(?P<before>^)(?P<host>{NAME})(?P<after>:[~/][^\s$#]{{0,120}}[$#]\s)"),
    re.compile(
        rf"(?i)(?P<before>\b(?:(?:host_?name|node_?name|host|master_addr)(?:=|:\s)|[A-Z0-9_]{{0,40}}_?"
        rf"(?:host|hostname|nodename|nodelist|addr)=)\"?)(?P<host>{NAME})(?P<after>)"
    ),
    re.compile(rf"(?P<before>\bpods?[/ ]\s{{0,4}})(?P<host>(?=.{{0,120}}-){NAME})(?P<after>)"),
    re.compile(
        r"(?P<before>(?<![\w.-]))(?P<host>[a-z][a-z0-9-]{0,80}-[a-f0-9]{6,10}-[a-z0-9]{5})"
        r"(?P<after>(?![\w-]))"
    ),
    re.compile(
        r"(?P<before>(?<![\w.-]))(?P<host>(?:ip|ec2)-\d{1,3}(?:-\d{1,3}){3}(?:\.[A-Za-z0-9-]{1,40}){0,6}"
        r"|i-[0-9a-f]{8,17})(?P<after>(?![\w-]))"
    ),
    re.compile(
        r"(?P<before>(?<![\w.-]))(?P<host>(?:[A-Za-z0-9-]{1,60}\.){1,5}"
        r"(?:internal|local|localdomain|lan|corp|intra|amazonaws\.com|compute\.google\.com))"
        r"(?P<after>(?![\w-]))"
    ),
    re.compile(rf"(?P<before>(?<!\\)\\\\)(?P<host>{NAME})(?P<after>\\)"),
)
"""Where a tool, a prompt, a scheduler or a cloud writes a host. The last ones are names that only
machines have: pods with their hash, addresses as names, inner domains, Windows shares.
"""
ACCOUNT = re.compile(
    rf"(?<![\w.+@-])(?P<user>[\w.+-](?:[\w.+@-]{{0,62}}[\w.+-])?)@(?P<host>{NAME})"
)
"""With all that stands before the last @: `name@domain@host` is one account too."""
FOLDER = re.compile(r"(?<=/)[\w.+-]{3,64}(?![\w.+-])")
NOBODY = frozenset({"root", "user", "ubuntu", "admin", "home", "data", "workspace"})
"""Accounts of images and not of people, which also name folders."""

Replacement = str | Callable[[re.Match[str]], str]


def _keep(kept: str, placeholder: str) -> Callable[[re.Match[str]], str]:
    """Keeps the named groups of a match and puts a placeholder for the rest."""

    def replace(match: re.Match[str]) -> str:
        return f"{match[kept]}{placeholder}"

    return replace


HEX = "[0-9A-Fa-f]"
SECRET_NAME = r"(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?|AUTH)"  # noqa: S105
VOLUME = (
    r"(?:workspaces?|data\d?|datasets?|mnt|media|scratch|raid|nfs|lustre|fsx|gpfs|beegfs|efs|projects?"
    r"|storage|shared|work|nvme\d{0,2}|volumes?|notebooks|content)"
)
"""Folders under which people have theirs. Tools that were built there keep their names."""
PATTERNS: tuple[tuple[str, re.Pattern[str], Replacement], ...] = (
    (
        "secret",
        re.compile(
            rf"(?P<name>\b(?:[A-Z0-9_]{{0,40}}{SECRET_NAME}\s{{0,4}}[=:]|"
            rf"[A-Za-z0-9_-]{{0,40}}(?i:{SECRET_NAME})=)\s{{0,4}})(?!\[secret\])[^\s,;]{{4,400}}"
        ),
        _keep("name", "[secret]"),
    ),
    (
        "secret",
        re.compile(
            r"\b(?:hf_|ghp_|gho_|github_pat_|glpat-|sk-|xox[abp]-|AKIA|eyJ)[A-Za-z0-9_.-]{16,400}"
        ),
        "[secret]",
    ),
    (
        "secret",
        re.compile(r"(?i)(?P<name>\bbearer\s{1,4})(?!\[secret\])[A-Za-z0-9_.-]{8,400}"),
        _keep("name", "[secret]"),
    ),
    (
        "secret",
        re.compile(
            r"(?i)(?P<name>\b(?:password|passwd|secret|api[_-]?key|(?:access|auth)[_-]?token)"
            r"\"?\s{0,4}[=:]\s{0,4}\"?)(?!\[secret\])[^\s,;\"]{4,400}"
        ),
        _keep("name", "[secret]"),
    ),
    ("secret", re.compile(r"(?P<name>://)[^\s/@:]{1,80}:[^\s/@]{1,200}@"), _keep("name", "")),
    ("uuid", re.compile(rf"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"), "[uuid]"),
    (
        "serial",
        re.compile(
            r"(?i)(?P<name>\b(?:[A-Za-z_]{0,24} ?serial(?:[ _]?n(?:umber|o))?|GPU PDI|AMDUUID"
            r"|XGMIHIVEID|fru[ _]id|asset[ _]?tag)\"?\s{0,48}[:=]\s{0,8}\"?)"
            r"(?!N/A\b|masked\b|\[)[A-Za-z0-9-]{1,64}"
        ),
        _keep("name", "[serial]"),
    ),
    (
        "serial",
        re.compile(
            r"(?i)(?P<name>\b(?:(?:board|gpu|fru|product)[ _])?(?:part|product)[ _]number\"?"
            r"\s{0,48}[:=]\s{0,8}\"?)(?!N/A\b|\[)[A-Za-z0-9-]{2,64}"
        ),
        _keep("name", "[part]"),
    ),
    ("address", re.compile(rf"(?<![\w])0x{HEX}{{16}}(?![\w])"), "[guid]"),
    ("address", re.compile(rf"(?<![\w.-])(?:{HEX}{{4}}\.){{2}}{HEX}{{4}}(?![\w.-])"), "[mac]"),
    (
        "serial",
        re.compile(
            r"(?i)(?P<name>name=\"[A-Za-z]{0,40}(?:serial|uuid|assettag|macaddress)[A-Za-z]{0,20}"
            r"\" value=\")(?!\[)[^\"]{1,120}"
        ),
        _keep("name", "[serial]"),
    ),
    (
        "serial",
        re.compile(r"(?P<name>\b(?:guid|host_hash)=\"0x)(?!0\")[0-9A-Fa-f]{1,32}"),
        _keep("name", "0"),
    ),
    ("address", re.compile(rf"(?<![\w:.-])(?:{HEX}{{2}}[:-]){{5}}{HEX}{{2}}(?![\w:-])"), "[mac]"),
    ("address", re.compile(rf"(?<![\w:.])(?:{HEX}{{4}}:){{3}}{HEX}{{4}}(?![\w:.])"), "[guid]"),
    (
        "address",
        re.compile(rf"(?<![\w:.])(?:{HEX}{{1,4}}:){{7}}{HEX}{{1,4}}(?![\w:])"),
        "[address]",
    ),
    (
        "address",
        re.compile(rf"(?<![\w.])(?:{HEX}{{1,4}}:){{1,6}}(?::{HEX}{{1,4}}){{1,6}}(?![\w:])"),
        "[address]",
    ),
    (
        "address",
        re.compile(
            r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]\d|\w)"
        ),
        "[address]",
    ),
    (
        "address",
        re.compile(r"(?i)(?P<name>guid\"?\s{0,8}[:=]\s{0,8}\"?(?:0x)?)[0-9a-f]{16}\b"),
        _keep("name", "[guid]"),
    ),
    (
        "user",
        re.compile(r"(?P<name>\\Users\\)(?!user\\)[^\\/:\"'<>|\n]{1,64}(?=\\)"),
        _keep("name", "user"),
    ),
    (
        "user",
        re.compile(r"(?P<name>\b[A-Za-z]:/Users/)(?!user/)[^/:\"'<>|\n]{1,64}(?=/)"),
        _keep("name", "user"),
    ),
    (
        "path",
        re.compile(
            r"(?P<name>(?<![A-Za-z0-9\\])[A-Za-z]:\\)(?!Users\\|Windows\b|Program|user\b)"
            r"[^\\/:\"'<>|\s]{1,64}"
        ),
        _keep("name", "user"),
    ),
    (
        "path",
        re.compile(
            rf"(?P<name>(?<![\w.])(?:/{VOLUME}){{1,3}}/)(?!(?:{VOLUME}|users?|Users|home)/|user\b"
            r"|[a-z_]{4,24}_perf\b|[nr]ccl|nvbandwidth|p2pBandwidth|simpleP2P|cuda)"
            r"[\w.+@-]{1,64}"
        ),
        _keep("name", "user"),
    ),
    (
        "user",
        re.compile(
            r"(?im)(?P<name>(?:^[\s#|]{0,20}(?:user|user ?name|login|account)\s{0,20}:\s{0,8}|"
            r"\s--user(?:name)?[ =]))(?!user\b)[A-Za-z][\w.-]{1,64}"
        ),
        _keep("name", "user"),
    ),
    (
        "user",
        re.compile(r"(?<![\w.+-])(?!user@)[\w.+-]{1,64}(?P<name>@\[address\])"),
        r"user\g<name>",
    ),
    ("user", re.compile(r"(?<![\w/])~(?!user/)[a-z][\w.-]{1,64}(?P<name>/)"), r"~user\g<name>"),
    (
        "user",
        re.compile(
            r"(?P<name>(?:/home/|/users/|/Users/|\\Users\\|/export/home/))(?!user\b)[^\s/\\:\"'<>|]{1,64}"
        ),
        _keep("name", "user"),
    ),
    (
        "user",
        re.compile(
            r"(?i)(?P<name>\b(?:[A-Z0-9_]{0,40}_)?(?:USER|LOGNAME|USERNAME|SSH_CLIENT|SSH_CONNECTION"
            r"|ACCOUNT|JOB_NAME|CLUSTER_NAME)=)(?!user\b)\S{1,120}"
        ),
        _keep("name", "user"),
    ),
    (
        "user",
        re.compile(
            r"(?i)(?P<name>\"(?:user|user_?name|login|owner|account)\"\s{0,8}:\s{0,8}\")"
            r"(?!user\")[^\"\n]{1,64}"
        ),
        _keep("name", "user"),
    ),
    (
        "path",
        re.compile(
            r"(?P<name>(?<![\w.])/(?:mnt|media|net|nfs|gpfs|lustre)/user/)(?!user/)[\w.+@-]{1,64}(?=/)"
        ),
        _keep("name", "user"),
    ),
    (
        "path",
        re.compile(r"(?P<name>(?<!\\)\\\\[\w.-]{1,120}\\)(?!\[path\])[^\s\"'<>|]{1,400}"),
        _keep("name", "[path]"),
    ),
    ("process", re.compile(r"(?P<name>\bPid\s{1,8})(?!0\b)\d{1,9}"), _keep("name", "0")),
    ("process", re.compile(r'(?P<name>"pid"\s{0,8}:\s{0,8})(?!0\b)\d{1,9}'), _keep("name", "0")),
    (
        "host",
        re.compile(
            r"(?P<name>(?:\s-H|\s--host|\s-host)\s{1,4})(?!\[hosts\])[A-Za-z][\w.,:-]{1,400}"
        ),
        _keep("name", "[hosts]"),
    ),
)


@dataclass(slots=True)
class Hosts:
    """Names found so far, each with its placeholder; numbers in use are not given again."""

    taken: set[str]
    known: dict[str, str] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)
    removed: Counter[str] = field(default_factory=Counter)
    free: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        """One count for all: a log that names 30,000 hosts is not searched anew for each."""
        names = (f"host-{number}" for number in count(1))
        self.free = (name for name in names if name not in self.taken)

    def placeholder(self, name: str) -> str:
        if PLACEHOLDER.fullmatch(name):
            return name
        if name not in self.known:
            self.known[name] = next(self.free)
        return self.known[name]

    def replace(self, match: re.Match[str]) -> str:
        name = match["host"]
        if PLACEHOLDER.fullmatch(name) or NOT_NAMED.fullmatch(name):
            return match[0]
        self.removed["host"] += 1
        return f"{match['before']}{self.placeholder(name)}{match['after']}"

    def replace_account(self, match: re.Match[str]) -> str:
        self.users.add(match["user"])
        told = f"user@{self.placeholder(match['host'].rstrip('.-'))}"
        self.removed["user"] += told != match[0]
        return told

    def replace_folder(self, match: re.Match[str]) -> str:
        """A person's account in a path: `/raid/jdoe` beside `jdoe@host`."""
        if match[0] not in self.users or match[0] in NOBODY:
            return match[0]
        self.removed["user"] += 1
        return "user"

    def replace_word(self, match: re.Match[str]) -> str:
        name = match[0]
        if name not in self.known or not TELLING.fullmatch(name) or NOT_HOSTS.fullmatch(name):
            return name
        self.removed["host"] += 1
        return self.known[name]


def scrub(text: str) -> Scrubbed:
    """The text without names, addresses and secrets. Scrubbing twice changes nothing."""
    plain = INVISIBLE.sub("", ESCAPES.sub("", text))
    plain, dropped = without_parts(plain)
    removed = Counter({"environment": dropped} if dropped else {})
    for kind, pattern, replacement in PATTERNS:
        plain, found = pattern.subn(replacement, plain)
        removed[kind] += found
    hosts = Hosts(set(PLACEHOLDER.findall(plain)), removed=removed)
    for pattern in HOSTS:
        plain = pattern.sub(hosts.replace, plain)
    plain = PIDS.sub(r"\g<name>:0:0", plain)
    plain = ACCOUNT.sub(hosts.replace_account, plain)
    plain = FOLDER.sub(hosts.replace_folder, plain)
    plain = WORD.sub(hosts.replace_word, plain)
    return Scrubbed(plain, tuple(sorted((kind, times) for kind, times in removed.items() if times)))


PIDS = re.compile(r"(?P<name>\bhost-\d{1,6}):\d{1,9}:\d{1,9}(?=\s{1,4}\[)")
