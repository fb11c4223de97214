from reservations.models.audit import AuditEntry, Pulse, Report, Site
from reservations.models.bookings import Allocation, ApiCall, Booking
from reservations.models.fleet import Device, Host, HostHold, HostStatus
from reservations.models.notices import Notice
from reservations.models.people import Account, Membership, Team, Token, User
from reservations.models.rules import Rule

__all__ = [
    "Account",
    "Allocation",
    "ApiCall",
    "AuditEntry",
    "Booking",
    "Device",
    "Host",
    "HostHold",
    "HostStatus",
    "Membership",
    "Notice",
    "Pulse",
    "Report",
    "Rule",
    "Site",
    "Team",
    "Token",
    "User",
]
