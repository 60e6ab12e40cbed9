"""Providers, their sources, what was fetched from them, and the listings that came of it."""

from __future__ import annotations

from enum import StrEnum

from django.core.validators import URLValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse
from simple_history.models import HistoricalRecords

from evaluator.machine import Availability, LinkClass
from evaluator.prices import Basis, Purchase, TimeUnit
from marketplace.models.choices import choices, one_of, positive_or_unknown


class SourceKind(StrEnum):
    PAGE = "page"
    FEED = "feed"


class RobotsState(StrEnum):
    UNKNOWN = "unknown"
    ALLOWED = "allowed"
    DISALLOWED = "disallowed"
    UNREACHABLE = "unreachable"


class Outcome(StrEnum):
    """How a sync run ended. Only `published` and `unchanged` refresh a listing's age."""

    RUNNING = "running"
    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    HELD = "held"
    FAILED = "failed"
    ABANDONED = "abandoned"


class Decision(StrEnum):
    """A curator's word on one row that was set aside. None yet is "": it waits."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"


class Provider(models.Model):
    """A company that rents machines."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=120)
    website = models.URLField(blank=True)
    notes = models.TextField(blank=True)

    history = HistoricalRecords()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Source(models.Model):
    """One page or feed of a provider, read by one adapter on its own schedule."""

    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="sources")
    key = models.SlugField(max_length=80, unique=True)
    kind = models.CharField(max_length=8, choices=choices(SourceKind))
    adapter = models.CharField(max_length=64, help_text="A name of the adapter registry.")
    url = models.URLField(
        max_length=500,
        blank=True,
        validators=[URLValidator(schemes=["http", "https"])],
        help_text="Empty for a source that is only read from files.",
    )
    profile = models.JSONField(default=dict, blank=True)
    interval_minutes = models.PositiveIntegerField(default=360)
    enabled = models.BooleanField(default=True)
    bundled = models.BooleanField(
        default=False, help_text="Ships with Linkproof and is served by its own sample server."
    )
    robots = models.CharField(
        max_length=12, choices=choices(RobotsState), default=RobotsState.UNKNOWN.value
    )
    fence = models.PositiveBigIntegerField(
        default=0, help_text="Number of the newest run; a run with an older one may not publish."
    )
    last_success_at = models.DateTimeField(null=True, blank=True)

    history = HistoricalRecords(excluded_fields=["fence", "last_success_at"])

    class Meta:
        ordering = ["key"]
        constraints = [
            one_of("kind", SourceKind, "source_kind_known"),
            one_of("robots", RobotsState, "source_robots_known"),
            models.CheckConstraint(condition=Q(interval_minutes__gt=0), name="source_interval_set"),
        ]

    def __str__(self) -> str:
        return self.key


class Snapshot(models.Model):
    """One body as it was fetched. Never changed: every published value leads back to one."""

    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="snapshots")
    url = models.CharField(max_length=1000)
    body = models.BinaryField()
    byte_count = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    content_type = models.CharField(max_length=200, blank=True)
    headers = models.JSONField(default=dict)
    fetched_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(
        default=0, help_text="Readings begun and not ended: a page that kills its reader."
    )

    class Meta:
        ordering = ["-fetched_at"]
        constraints = [
            models.UniqueConstraint(fields=["source", "url", "sha256"], name="snapshot_once"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.sha256[:12]}"


class SyncRun(models.Model):
    """One attempt to bring a source up to date: its lease, its fencing number and its outcome."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="runs")
    fence = models.PositiveBigIntegerField()
    outcome = models.CharField(
        max_length=12, choices=choices(Outcome), default=Outcome.RUNNING.value
    )
    reason = models.CharField(max_length=500, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    started_at = models.DateTimeField()
    lease_until = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict)
    drift = models.JSONField(
        default=dict, help_text="Which listings are new, changed and gone; the first of each."
    )
    findings = models.JSONField(default=list)
    snapshots = models.ManyToManyField(Snapshot, related_name="runs")
    slot = models.DateTimeField(
        null=True, blank=True, help_text="Start of the interval whose scheduled visit this is."
    )
    layout = models.JSONField(
        default=list, help_text="Column heads of the tables or the file, row by row."
    )
    rejected_at = models.DateTimeField(
        null=True, blank=True, help_text="A curator looked at the held pages and refused them."
    )

    class Meta:
        ordering = ["-started_at"]
        constraints = [
            one_of("outcome", Outcome, "syncrun_outcome_known"),
            models.UniqueConstraint(fields=["source", "fence"], name="syncrun_fence_once"),
            models.UniqueConstraint(
                fields=["source"],
                condition=Q(outcome=Outcome.RUNNING.value),
                name="syncrun_one_running",
            ),
            models.UniqueConstraint(
                fields=["source", "slot"],
                condition=~Q(outcome=Outcome.ABANDONED.value),
                name="syncrun_slot_once",
            ),
        ]
        indexes = [models.Index(fields=["-finished_at"], name="syncrun_by_end")]

    def __str__(self) -> str:
        return f"{self.source_id}#{self.fence} {self.outcome}"


class Listing(models.Model):
    """A machine as a catalog offers it.

    A null column is unknown; a value is declared by `seen_in` at `last_seen`, in the provider's
    own `words`, unless `corrections` holds a curator's value for it, with its grade, source and
    time: {attribute: {"value", "grade", "source", "as_of"}}.
    """

    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="listings")
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="listings")
    sku = models.CharField(max_length=200)
    region = models.CharField(max_length=120, blank=True)
    zone = models.CharField(max_length=120, blank=True)
    vram_key = models.PositiveIntegerField(
        default=0, help_text="GB per GPU as part of the identity, 0 when unknown."
    )
    generation = models.PositiveSmallIntegerField(
        default=0, help_text="Counts up when the provider gives the same name to other hardware."
    )

    title = models.CharField(max_length=300, blank=True)
    url = models.CharField(max_length=1000, blank=True)
    gpu_model = models.CharField(max_length=80, null=True, blank=True)
    gpu_count = models.PositiveIntegerField(null=True, blank=True)
    nodes = models.PositiveIntegerField(default=1)
    gpu_fraction = models.CharField(max_length=40, blank=True)
    vram_bytes_per_gpu = models.PositiveBigIntegerField(null=True, blank=True)
    vram_reported_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    form_factor = models.CharField(max_length=20, null=True, blank=True)
    link = models.CharField(max_length=20, choices=choices(LinkClass), null=True, blank=True)
    inter_node = models.CharField(max_length=120, null=True, blank=True)
    availability = models.CharField(
        max_length=12, choices=choices(Availability), default=Availability.UNKNOWN.value
    )
    quantity = models.PositiveIntegerField(null=True, blank=True)
    vcpus = models.PositiveIntegerField(null=True, blank=True)
    ram_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    local_storage_bytes = models.PositiveBigIntegerField(null=True, blank=True)

    words = models.JSONField(default=dict, blank=True)
    findings = models.JSONField(default=list, blank=True)
    corrections = models.JSONField(default=dict, blank=True)

    machine_hour_amount = models.DecimalField(
        max_digits=20, decimal_places=8, null=True, blank=True, editable=False
    )
    machine_hour_currency = models.CharField(max_length=3, blank=True, editable=False)
    configuration = models.CharField(max_length=32, blank=True, editable=False)

    row_digest = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Of the raw row and all that its reading depended on.",
    )
    row_hint = models.CharField(
        max_length=40, blank=True, default="", db_default="", editable=False
    )

    seen_in = models.ForeignKey(Snapshot, on_delete=models.PROTECT, related_name="listings")
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True)

    history = HistoricalRecords(
        excluded_fields=["last_seen", "seen_in", "machine_hour_amount", "row_digest", "row_hint"]
    )

    class Meta:
        ordering = ["provider", "sku", "region", "zone"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "sku", "region", "zone", "vram_key", "generation"],
                name="listing_identity",
            ),
            one_of("availability", Availability, "listing_availability_known"),
            positive_or_unknown("gpu_count", "listing_gpu_count_positive"),
            positive_or_unknown("vram_bytes_per_gpu", "listing_vram_positive"),
            positive_or_unknown("vcpus", "listing_vcpus_positive"),
            positive_or_unknown("ram_bytes", "listing_ram_positive"),
            positive_or_unknown("machine_hour_amount", "listing_amount_positive"),
            models.CheckConstraint(condition=Q(nodes__gt=0), name="listing_nodes_positive"),
        ]
        indexes = [
            models.Index(fields=["gone_at", "gpu_model", "gpu_count"], name="listing_by_gpu"),
            models.Index(fields=["gone_at", "machine_hour_amount"], name="listing_by_price"),
            models.Index(fields=["configuration"], name="listing_by_configuration"),
            models.Index(fields=["source", "gone_at"], name="listing_by_source"),
        ]

    def __str__(self) -> str:
        return self.title or self.sku

    def get_absolute_url(self) -> str:
        return reverse("listing", args=[self.pk])


class Price(models.Model):
    """A price over the time it was published. Rows are added and closed, never rewritten.

    Two prices of one purchase model may stand side by side, say by the hour and by the month.
    """

    listing = models.ForeignKey(Listing, on_delete=models.CASCADE, related_name="prices")
    amount = models.DecimalField(max_digits=20, decimal_places=8)
    currency = models.CharField(max_length=3, blank=True, help_text="Empty when not stated.")
    unit = models.CharField(max_length=8, choices=choices(TimeUnit))
    basis = models.CharField(max_length=8, choices=choices(Basis))
    purchase = models.CharField(max_length=10, choices=choices(Purchase))
    term = models.CharField(max_length=60, blank=True)
    machine_per_hour = models.DecimalField(
        max_digits=20, decimal_places=8, null=True, blank=True, help_text="Null: not derivable."
    )
    words = models.CharField(max_length=300, blank=True)
    snapshot = models.ForeignKey(Snapshot, on_delete=models.PROTECT, related_name="prices")
    first_seen = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["listing", "purchase", "term", "-first_seen"]
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="price_amount_positive"),
            positive_or_unknown("machine_per_hour", "price_machine_per_hour_positive"),
            one_of("unit", TimeUnit, "price_unit_known"),
            one_of("basis", Basis, "price_basis_known"),
            one_of("purchase", Purchase, "price_purchase_known"),
            models.UniqueConstraint(
                fields=["listing", "purchase", "term", "unit", "basis", "currency", "amount"],
                condition=Q(superseded_at__isnull=True),
                name="price_one_current",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} per {self.basis}-{self.unit}"


class QuarantinedRow(models.Model):
    """A row that a run read and did not believe, with the finding that says why."""

    run = models.ForeignKey(SyncRun, on_delete=models.CASCADE, related_name="quarantined")
    sku = models.CharField(max_length=200)
    region = models.CharField(max_length=120, blank=True)
    zone = models.CharField(max_length=120, blank=True)
    reason = models.CharField(max_length=40)
    finding = models.JSONField()
    words = models.JSONField(default=dict)
    decision = models.CharField(
        max_length=8, choices=choices(Decision), blank=True, default="", db_default=""
    )
    decided_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["run", "sku"]
        indexes = [models.Index(fields=["run", "reason"], name="quarantine_by_reason")]

    def __str__(self) -> str:
        return f"{self.sku}: {self.reason}"
