"""Django's admin, for operators: people, accounts, rules, hosts; bookings and the trail to read only.

What has rules of its own is written by its service, never by a form.
"""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from reservations import clock, registry
from reservations.core.errors import DomainError
from reservations.models import (
    Account,
    Allocation,
    AuditEntry,
    Booking,
    Device,
    Host,
    HostStatus,
    Membership,
    Notice,
    Report,
    Rule,
    Team,
    Token,
    User,
)
from reservations.services import hosts, people, records
from reservations.services.actors import Actor

admin.site.site_header = admin.site.site_title = "Berth"
admin.site.index_title = "Manage"


def actor_of(request: HttpRequest) -> Actor:
    if not isinstance(request.user, User):
        raise TypeError("the admin is for people who are signed in")
    return Actor.of(request.user, source="admin", address=request.META.get("REMOTE_ADDR"))


def _by_operator(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.is_active and request.user.is_operator


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _UserAdmin = UserAdmin[User]
    _Inline = admin.TabularInline[Any, Any]
else:
    # The stubs' generics are no classes at run time.
    _ModelAdmin, _UserAdmin, _Inline = admin.ModelAdmin, UserAdmin, admin.TabularInline


class OperatorsMixin:
    """Operators may; Django's own permissions are not used here."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _by_operator(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _by_operator(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _by_operator(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _by_operator(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _by_operator(request)


class Editable(OperatorsMixin, _ModelAdmin):
    """A form is enough."""


class Recorded(Editable):
    """A form is enough, and the trail tells what it changed."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        records.save(obj, actor=actor_of(request), now=clock.now())

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        records.delete(obj, actor=actor_of(request), now=clock.now())

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        with transaction.atomic():
            for obj in queryset:
                self.delete_model(request, obj)


class ByService(OperatorsMixin, _ModelAdmin):
    """Saves through services; what they refuse is shown above the form, and nothing is saved."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(request.get_full_path())

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnly(OperatorsMixin, _ModelAdmin):
    """History and decisions of others: to look at."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Host)
class HostAdmin(ByService):
    list_display = ("name", "mode")
    fields = ("name", "mode", "settings", "labels")

    def get_readonly_fields(self, request: HttpRequest, obj: Host | None = None) -> tuple[str, ...]:
        # Its worker knows the host by that name; the manage page shows first what a mode would do.
        return ("name", "mode") if obj else ()

    def save_model(self, request: HttpRequest, obj: Host, form: Any, change: bool) -> None:
        actor, now = actor_of(request), clock.now()
        if not change:
            made, token = hosts.add_host(
                obj.name, actor=actor, now=now, mode=obj.mode, settings=obj.settings
            )
            obj.pk = made.pk
            messages.warning(request, f"Token of {obj.name}, not shown again: {token}")
        elif obj.settings != Host.objects.get(pk=obj.pk).settings:
            hosts.set_mode(obj, mode=obj.mode, settings=obj.settings, actor=actor, now=now)
        hosts.set_labels(obj, obj.labels, actor=actor, now=now)


@admin.register(Device)
class DeviceAdmin(ByService):
    list_display = ("uuid", "host", "index", "model", "managed_by", "bookable", "state")
    list_filter = ("host", "managed_by", "state")
    search_fields = ("uuid", "model")
    fields = ("uuid", "host", "parent", "index", "model", "state", "managed_by", "bookable")
    readonly_fields = ("uuid", "host", "parent", "index", "model", "state")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Hosts name their devices.
        return False

    def save_model(self, request: HttpRequest, obj: Device, form: Any, change: bool) -> None:
        hosts.set_use(
            obj,
            managed_by=obj.managed_by,
            bookable=obj.bookable,
            actor=actor_of(request),
            now=clock.now(),
        )


@admin.register(User)
class PersonAdmin(ByService, _UserAdmin):
    add_form = AdminUserCreationForm
    list_display = ("username", "display_name", "kind", "is_operator", "is_active")
    list_filter = ("kind", "is_operator", "is_active")
    search_fields = ("username", "display_name", "email")
    ordering = ("username",)
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password", "display_name", "email", "kind")}),
        ("Access", {"fields": ("is_active", "is_operator", "expires_at")}),
        ("Where", {"fields": ("time_zone", "locale")}),
    )
    add_fieldsets = (
        (
            None,
            {"fields": ("username", "usable_password", "password1", "password2", "is_operator")},
        ),
    )

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        if change and "is_active" in form.changed_data and not obj.is_active:
            # Their bookings end with them, in a transaction of its own after the form's.
            obj.is_active = True
            actor = actor_of(request)
            transaction.on_commit(
                lambda: people.deactivate_user(obj.pk, actor=actor, now=clock.now())
            )
        is_operator = obj.is_operator
        if "is_operator" in form.changed_data:
            obj.is_operator = not is_operator
        super().save_model(request, obj, form, change)
        people.set_operator(obj, is_operator=is_operator, actor=actor_of(request), now=clock.now())


class Memberships(OperatorsMixin, _Inline):
    model = Membership
    extra = 0
    autocomplete_fields = ("user",)


@admin.register(Team)
class TeamAdmin(Editable):
    list_display = ("name", "share")
    inlines = (Memberships,)


@admin.register(Account)
class AccountAdmin(Recorded):
    list_display = ("user", "host", "unix_name", "expected_uid")
    list_filter = ("host",)
    search_fields = ("user__username", "unix_name")
    autocomplete_fields = ("user",)


@admin.register(Rule)
class RuleAdmin(Recorded):
    list_display = ("name", "kind", "limit", "scope", "action", "valid_from", "valid_to")

    def save_model(self, request: HttpRequest, obj: Rule, form: Any, change: bool) -> None:
        if fault := registry.fault_of(obj):
            messages.error(request, f"Not saved: {fault}")
            return
        super().save_model(request, obj, form, change)


class Allocations(OperatorsMixin, _Inline):
    model = Allocation
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Booking)
class BookingAdmin(ReadOnly):
    list_display = ("id", "owner", "start", "end", "state", "kind", "source")
    list_filter = ("state", "kind")
    search_fields = ("owner__username", "purpose")
    inlines = (Allocations,)


@admin.register(AuditEntry)
class AuditAdmin(ReadOnly):
    list_display = ("at", "actor_label", "verb", "booking", "host", "device", "why")
    list_filter = ("verb", "host")
    search_fields = ("actor_label", "why")
    show_full_result_count = False


@admin.register(Report)
class ReportAdmin(ReadOnly):
    list_display = ("at", "received_at", "host", "kind", "booking", "device")
    list_filter = ("kind", "host")
    show_full_result_count = False


@admin.register(HostStatus)
class HostStatusAdmin(ReadOnly):
    list_display = ("host", "last_seen", "silent_since", "mode", "clock_offset_s", "agent_version")


@admin.register(Notice)
class NoticeAdmin(ReadOnly):
    list_display = ("created", "user", "kind", "text", "delivered_at")
    list_filter = ("kind",)
    show_full_result_count = False


@admin.register(Token)
class TokenAdmin(ReadOnly):
    list_display = ("user", "name", "scopes", "created", "expires_at", "revoked_at", "last_used_at")
    exclude = ("digest",)
