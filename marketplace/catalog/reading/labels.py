"""Headers, terms and field names: which attribute the text under them gives."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache


class Attribute(Enum):
    """What a labelled text is about. TITLE and SKU name the row itself."""

    SKU = "sku"
    TITLE = "title"
    GPU = "gpu"
    GPU_COUNT = "gpu_count"
    NODES = "nodes"
    VRAM = "vram"
    VRAM_TOTAL = "vram_total"
    FORM_FACTOR = "form_factor"
    LINK = "link"
    FABRIC = "fabric"
    VCPU = "vcpu"
    RAM = "ram"
    DISK = "disk"
    PRICE = "price"
    BASIS = "basis"
    UNIT = "unit"
    CURRENCY = "currency"
    PURCHASE = "purchase"
    AVAILABILITY = "availability"
    QUANTITY = "quantity"
    REGION = "region"
    ZONE = "zone"
    URL = "url"
    LISTED = "listed"
    CPU_MODEL = "cpu_model"
    MEMORY = "memory"
    OTHER = "other"


A = Attribute
_GPU = (
    r"(?:gpus?|accelerators?|graphics?(?:\s?cards?)?|cards?|grafikkarten?|cartes? graphiques?|vga"
    r"|tarjetas?(?: gráficas?)?|schede? grafic(?:a|he)|placas? (?:gráficas?|de vídeo)|karta graficzna)"
)
_MEMORY = r"(?:memory|mem|ram|vram|size|speicher|mémoire)"
_EACH = r"(?: (?:each|per gpu|size|capacity|amount))?"
_RULES: tuple[tuple[Attribute, str], ...] = (
    (A.OTHER, r"(?:.{0,24} )?(?:set ?up|deposit|one ?(?:time|off))(?: .{0,24})?|egress|ingress|traffic|transfer|bandwidth (?:price|cost)|setup|deposit|cookie|duration|purpose"
              r"|mem(?:ory)? bandwidth|tflops|tdp|power|image|picture|storage (?:price|cost)|per gb\b|warranty|rating"
              r"|cuda cores|tensor cores|discount|save|backup|expires|updated"),
    (A.BASIS, r"(?:price|billing|rate|pricing) ?(?:basis|scope|model unit)|basis|charged per|priced per"),
    (A.CURRENCY, r"(?:price )?currency(?: code)?|währung|devise|price currency"),
    (A.UNIT, r"(?:price|billing|rate) ?(?:unit|period|interval|cycle)|billing|billed|interval|period|unit|time unit"),
    (A.PURCHASE, r"(?:pricing|purchase|rental|contract|price) (?:model|type|option|plan)|offer type|commitment|term"),
    (A.LISTED, r"(?:is )?(?:public|listed|published|visible|hidden|internal|private|deprecated)|staff only"),
    (A.VRAM_TOTAL, rf"(?:total|combined|aggregate|sum|machine) (?:of )?(?:v ?ram|{_GPU} {_MEMORY}|hbm)"
                   rf"|(?:v ?ram|{_GPU} {_MEMORY}|memory (?:mib|gib|gb|mb)) (?:total|combined)|{_GPU} {_MEMORY} \w{{2,3}} total"
                   rf"|{_GPU} total {_MEMORY}|total {_MEMORY} {_GPU}"
                   r"|(?=.*\b(?:total|łączn|gesamt|complessiv|celkov))(?=.*\bgpu)(?=.*(?:mem|pamię|speicher|mémoire|paměť)).{4,60}"),
    (A.VRAM, rf"v ?ram{_EACH}|video (?:memory|ram)|{_GPU} (?:v ?ram|{_MEMORY}){_EACH}|(?:memory|v ?ram|speicher) (?:per|/|each|je|pro) ?{_GPU}|hbm\w{{0,2}}"
             rf"|(?:per )?{_GPU} memory|grafikspeicher|gddr\w{{0,2}}|memory each"),
    (A.GPU_COUNT, rf"{_GPU} (?:count|qty|quantity|number|num|anzahl|amount|units?)|(?:number|no|nr|num|count|qty|anzahl|#|nombre)"
                  rf"(?: of| de| d| der| di)? ?{_GPU}|(?:número|numero|liczba|aantal) (?:de |di )?{_GPU}|# ?{_GPU}|num {_GPU}|gpu_?count|x ?{_GPU}|gpus per (?:node|server|machine|instance)"
                  r"|gpus|accelerators|cards|count|qty|anzahl gpus"),
    (A.NODES, r"nodes?(?: count)?|number of (?:nodes|machines|servers)|machines"),
    (A.FABRIC, r"network(?:ing)?(?: speed| interface)?|nic|ethernet|infiniband|uplink|bandwidth|inter ?node(?: network)?"
               r"|netzwerk|connectivity|cluster network|réseau|red|rete|rede|netwerk|sieć|port"),
    (A.LINK, rf"(?:{_GPU} )?(?:inter ?connect(?:ion|s)?|links?|topology|fabric)|nv ?link|nv ?switch|p2p|peer to peer"
             r"|gpu to gpu|peer access|interconexi[óo]n|interconnexion|interconnessione|interconexão"),
    (A.FORM_FACTOR, r"form ?factor|socket|bus|form|gpu form|board"),
    (A.VCPU, r"v ?cpus?(?: count| cores?)?|(?:virtual |logical |cpu )?(?:cores?|threads?)|cpus?(?: count| cores?| threads?)?"
             r"|vcores?|kerne|cœurs|number of (?:v ?cpus?|cores?)|rdzenie|cpu count"),
    (A.CPU_MODEL, r"cpu (?:model|type|name)|processors?|prozessor(?:en)?|processeurs?|procesador(?:es)?|processador(?:es)?|processor[ei]|procesor"),
    (A.RAM, r"(?:system |host |cpu |main |server )?(?:ram|ddr\d?)(?: (?:size|amount|mb|gb|mib|gib|memory))?"
            r"|(?:system|host|cpu|main|server) memory|arbeitsspeicher|ram|mémoire (?:vive|ram|système)|mem[oó]ria (?:ram|de sistema|do sistema|di sistema)|werkgeheugen|pamięć ram|dram"),
    (A.MEMORY, r"mem(?:ory)?(?: size| capacity| amount)?|speicher|mémoire|mem[oó]ria|geheugen|pamięć"),
    (A.DISK, r"(?:local |fast |included |instance |ephemeral |root |boot )?(?:nvme|ssd|disks?|storage|hdd|drives?|festplatte|stockage"
             r"|disques?|scratch|almacenamiento|armazenamento|archiviazione|opslag|disco|dysk|datenträger|stockage)(?: (?:size|space|capacity|storage|ssd|drives?|local|locale))?"),
    (A.QUANTITY, r"(?:free|available|remaining|in stock|stock)(?: (?:count|units?|machines?|servers?|quantity|now))?|capacity"
                 r"|quantity(?: available)?|num free|inventory|available (?:count|quantity)|units? (?:left|available)"),
    (A.AVAILABILITY, r"availability|status|stock(?: status)?|state|verfügbarkeit|disponibilité|lead time|delivery|dostępność"
                     r"|in stock|available|lieferzeit|disponibilidad|disponibilidade|disponibilità|beschikbaarheid|estado|état|stato"),
    (A.ZONE, r"(?:availability )?zone|az"),
    (A.REGION, r"regions?|locations?|data ?cent(?:er|re)s?|dc|sites?|standorte?|country|city|place|geo(?:location)?|pays|lieu"
               r"|lokalizacja|region code|land|ubicación|rég?ion|régions?|regi[oó]n(?:es)?|regione|região|regio|emplacement|localização|località|locatie"
               r"|centre de données|rechenzentrum|centro de (?:datos|dados)|datacenter"),
    (A.URL, r"url|link|href|order|rent|action"),
    (A.SKU, r"sku|ref(?:erence)?|réf(?:érence)?|referencia|referenz|riferimento|referência|código|codice|id|code|slug|product (?:id|code|number)|article|artikel(?:nummer)?|instance (?:id|type)|plan (?:id|code)"
            r"|part(?: no| number)?|machine id|server id|no|nr|#|flavou?r|api name|uuid|key"),
    (A.GPU, rf"{_GPU}(?: (?:model|type|name|config(?:uration)?|spec))?|(?:model|type) of {_GPU}|gpu details|karte|chip"
            r"|gpu \w{0,8} ?model"),
    (A.TITLE, r"(?:display |full |product |plan |machine |server )?(?:name|title)|machine|server|instance|plan|product|model|configuration|config|type|system|node|package|tier|offer"
              r"|maschine|serveur|bezeichnung|désignation|modell[eo]?|modèle|modelo|nombre|nom|nome|naam|nazwa|paquete|angebot|offre|oferta|label|description|machine type|node type|servidor|serwer|hardware|vm|spec(?:ification)?s?"),
)  # fmt: skip
_COMPILED = tuple((attribute, re.compile(rf"(?:{words})")) for attribute, words in _RULES)
_PRICE = re.compile(
    r"price|pricing|\brates?\b|\bcost|\$|€|£|₹|\b(?:usd|eur|gbp|chf|aed|inr|pln|sar|cad|aud)\b|hourly|monthly|on ?demand|\bspot\b"
    r"|interruptible|preemptible|reserved|pay ?as ?you ?go|payg|per (?:hour|month|day|week|gpu hour|hr)|\b\d{1,2} ?(?:year|yr|month|mo)s?\b"
    r"|\bfee|preis|prix|precio|prezzo|\bcena\b|preço|prijs|tarif|/ ?h(?:r|our)?\b|/ ?mo(?:nth)?\b|/ ?std|commit|\bhour\b|\bmonth\b|savings|weekly"
)  # fmt: skip
_NO_PRICE = re.compile(
    r"(?:vram|ram|memory|vcpu|disk|storage|bandwidth|traffic|basis|scope|currency|unit|model|type|period|interval|cycle|valid|set ?up)\b"
)
_UNITS_IN_BRACKETS = re.compile(
    r"[(\[]\s?(?:[kmgt]i?b|[kmgt]o|bytes?|pcs|x|count|#|each|local|cores?|gbps|gb/s)\s?[)\]]"
)
_TRAILING_UNIT = re.compile(r"[\s,]+(?:in )?(?:[kmgt]i?b|bytes?|gbps)$")


def plain_label(text: str) -> str:
    """A header or field name as lower-case words: "gpuMemory_MiB" is "gpu memory mib"."""
    units = re.sub(r"(?<![a-zA-Z])([kKMGT])(i?)B(?![a-zA-Z])", r"\1\2b", text[:200])
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", units)
    spaced = re.sub(r"[_\-./:*†‡?!]+", " ", spaced.lower())
    return " ".join(spaced.split())


@lru_cache(maxsize=4096)
def classify(text: str) -> Attribute | None:
    """The attribute that a label names. None where it is no label that we know."""
    if not text or len(text) > 120 or re.search(r"[$€£₹]\s?\d", text):
        return None
    lowered = " ".join(text.lower().split())
    plain = plain_label(text)
    bare = _TRAILING_UNIT.sub("", _UNITS_IN_BRACKETS.sub(" ", plain)).strip(" ()[]")
    bare = " ".join(bare.split())
    if is_per_gpu(text) and (host := _host_attribute(_PER_GPU.sub(" ", bare))):
        return host
    if (
        (_PRICE.search(lowered) or _PRICE.search(plain))
        and not _NO_PRICE.search(plain)
        and not _is_fee(plain)
    ):
        return A.PRICE
    open_words = " ".join(plain.translate({40: " ", 41: " "}).split())
    for attribute, pattern in _COMPILED:
        if any(map(pattern.fullmatch, (bare, plain, open_words))):
            return attribute
    return _price_of_machine(plain)


def _host_attribute(bare: str) -> Attribute | None:
    """ "vCPU per GPU", "RAM / GPU": a host figure counted per GPU."""
    words = " ".join(bare.split())
    found = (one for one, pattern in _COMPILED if one in _HOST and pattern.fullmatch(words))
    return next(found, None)


def _is_fee(plain: str) -> bool:
    return bool(re.search(r"set ?up|deposit|egress|traffic|per gb|one ?time|one ?off", plain))


def _price_of_machine(plain: str) -> Attribute | None:
    """ "Price model" is a purchase; "price per unit" is still a price."""
    if re.search(r"\bprice\b|\bcost\b|\brate\b|preis|prix", plain) and not _is_fee(plain):
        return (
            A.PRICE
            if not re.search(r"basis|currency|valid|period|interval|type", plain)
            else A.OTHER
        )
    return None


_HOST = frozenset({A.VCPU, A.RAM, A.DISK})
_PER_GPU = re.compile(r"\(?(?:\bper|/|\bje|\bpro)?\s?\b(?:gpu|card|accelerator)s?\b\)?", re.I)


def is_per_gpu(label: str) -> bool:
    """Whether a host attribute is counted per GPU: "vCPU / GPU", "RAM per GPU", "ram_per_gpu"."""
    return bool(
        re.search(r"(?:\bper|_per|/|\bje|\bpro)[\s_]?(?:gpu|card|accelerator)", label, re.I)
    )
